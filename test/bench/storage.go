package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// kept is what is in etcd of one TrainJob and the objects that are kept with it, each empty where
// there is none.
type kept struct {
	// runtime is the runtime itself.
	runtime                               []byte
	trainJob, configMap, jobSet, snapshot []byte
}

// sum is the size of all that comes and goes with the TrainJob, in bytes.
func (k kept) sum() int {
	return len(k.trainJob) + len(k.configMap) + len(k.jobSet) + len(k.snapshot)
}

// keeping is what is kept of TrainJobs that run on one runtime, without Signalbox and with it.
type keeping struct {
	runtime string
	// builtIn tells that the runtime is one that Trainer brings, random that its content is such that
	// it can hardly be compressed.
	builtIn, random bool
	stock, ours     kept
}

// trainJob is the name of the TrainJob. That of a runtime may have dots.
func (k keeping) trainJob() string { return strings.ReplaceAll(k.runtime, ".", "-") }

// sizedObject is an object in etcd, by its key there, and its size in bytes.
type sizedObject struct {
	key  string
	size int
}

// storage measures what TrainJobs take in etcd, with Signalbox and without.
func storage(ctx context.Context, o options) (report *figures.Report, err error) {
	sizes := []int{2000, 5000, 10_000, 20_000, 50_000, 100_000}
	if o.short {
		sizes = []int{20_000}
	}
	c, err := cluster.Start(ctx, cluster.Options{Signalbox: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	etcd, err := openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	s := &storages{cluster: c, etcd: etcd}
	if err := s.measure(ctx, sizes); err != nil {
		return nil, err
	}
	events, err := s.events(ctx)
	if err != nil {
		return nil, err
	}
	installed, err := s.installed(ctx)
	if err != nil {
		return nil, err
	}
	return storageReport(s.found, events, installed)
}

// storages measures in one cluster.
type storages struct {
	cluster *cluster.Cluster
	etcd    *store
	// namespace is that of the TrainJobs of now.
	namespace string
	found     []keeping
}

// storageNamespaces are those of the TrainJobs, without Signalbox and with it: of some, a volume claim
// stays that is in the way of the next one of that name. Their names are of the same length, as
// they are stored too.
var storageNamespaces = [2]string{"storage-a", "storage-b"}

// measure runs a TrainJob on each runtime, first without Signalbox and then with it.
func (s *storages) measure(ctx context.Context, sizes []int) error {
	signalbox, err := newSwitch(ctx, s.cluster)
	if err != nil {
		return err
	}
	for _, name := range storageNamespaces {
		if err := s.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	s.namespace = storageNamespaces[0]
	if err := signalbox.off(ctx); err != nil {
		return err
	}
	if err := s.runtimes(ctx, sizes); err != nil {
		return err
	}
	if err := s.run(ctx, false); err != nil {
		return fmt.Errorf("without Signalbox: %w", err)
	}
	if err := signalbox.on(ctx); err != nil {
		return err
	}
	s.namespace = storageNamespaces[1]
	if err := s.run(ctx, true); err != nil {
		return fmt.Errorf("with Signalbox: %w", err)
	}
	return nil
}

// runtimes makes the built-in runtimes anew, so that nothing of Signalbox is in them, and some more
// of these sizes.
func (s *storages) runtimes(ctx context.Context, sizes []int) error {
	installed := &unstructured.UnstructuredList{}
	installed.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind))
	if err := s.cluster.Client.List(ctx, installed); err != nil {
		return err
	}
	for i := range installed.Items {
		runtime := &installed.Items[i]
		if err := s.cluster.Client.Delete(ctx, runtime); err != nil {
			return err
		}
		anew := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
		anew.SetName(runtime.GetName())
		anew.SetLabels(runtime.GetLabels())
		anew.Object["spec"] = runtime.Object["spec"]
		unstructured.RemoveNestedField(anew.Object, "spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeRevision)
		for _, emptied := range [][]string{{"spec", "template", "metadata", "annotations"}, {"spec", "template", "metadata"}} {
			if left, _, err := unstructured.NestedMap(anew.Object, emptied...); err == nil && len(left) == 0 {
				unstructured.RemoveNestedField(anew.Object, emptied...)
			}
		}
		if err := s.add(ctx, anew, keeping{builtIn: true}); err != nil {
			return err
		}
	}
	for _, size := range sizes {
		if err := s.add(ctx, runtimeOf(fmt.Sprintf("own-%d", size), size), keeping{}); err != nil {
			return err
		}
	}
	random := runtimeOf("own-random-20000", 20_000)
	if err := randomize(random); err != nil {
		return err
	}
	return s.add(ctx, random, keeping{random: true})
}

// add creates the runtime once its predecessor is gone, and waits until Trainer knows it.
func (s *storages) add(ctx context.Context, runtime *unstructured.Unstructured, as keeping) error {
	as.runtime = runtime.GetName()
	s.found = append(s.found, as)
	err := eventually(ctx, "room for runtime "+as.runtime, func(ctx context.Context) error {
		return s.cluster.Client.Create(ctx, runtime.DeepCopy())
	})
	if err != nil {
		return err
	}
	return eventually(ctx, "Trainer to know runtime "+as.runtime, func(ctx context.Context) error {
		return s.cluster.Client.Create(ctx, trainJob(s.namespace, "probe", as.runtime, nil), client.DryRunAll)
	})
}

// randomize puts random text in the environment variables of a runtime, the same each time.
func randomize(runtime *unstructured.Unstructured) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	jobs, _, err := unstructured.NestedSlice(runtime.Object, "spec", "template", "spec", "replicatedJobs")
	if err != nil {
		return err
	}
	containers, _, err := unstructured.NestedSlice(jobs[0].(map[string]any), "template", "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	env, _ := containers[0].(map[string]any)["env"].([]any)
	for _, entry := range env {
		variable := entry.(map[string]any)
		value := make([]byte, len(variable["value"].(string)))
		for i := range value {
			value[i] = letters[random.IntN(len(letters))]
		}
		variable["value"] = string(value)
	}
	if err := unstructured.SetNestedSlice(jobs[0].(map[string]any), containers, "template", "spec", "template", "spec", "containers"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(runtime.Object, jobs, "spec", "template", "spec", "replicatedJobs")
}

// run creates a TrainJob on each runtime, keeps what is in etcd once nothing changes any more, and
// removes them.
func (s *storages) run(ctx context.Context, ours bool) error {
	for i := range s.found {
		if ours {
			if err := s.stamped(ctx, s.found[i].runtime); err != nil {
				return err
			}
		}
		if err := s.cluster.Client.Create(ctx, trainJob(s.namespace, s.found[i].trainJob(), s.found[i].runtime, nil)); err != nil {
			return err
		}
	}
	for i := range s.found {
		is, err := s.settled(ctx, s.found[i], ours)
		if err != nil {
			return err
		}
		if ours {
			s.found[i].ours = is
		} else {
			s.found[i].stock = is
		}
	}
	kind, background := trainJob("", "", "", nil), client.PropagationPolicy(metav1.DeletePropagationBackground)
	if err := s.cluster.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace), background); err != nil {
		return err
	}
	return eventually(ctx, "the end of the TrainJobs", func(ctx context.Context) error {
		for i := range s.found {
			is, err := s.read(ctx, s.found[i])
			if err != nil {
				return err
			}
			if is.sum() > 0 {
				return fmt.Errorf("something of %s is still there", s.found[i].runtime)
			}
		}
		return nil
	})
}

// stamped waits until the runtime carries its revision.
func (s *storages) stamped(ctx context.Context, name string) error {
	return eventually(ctx, "the revision of runtime "+name, func(ctx context.Context) error {
		runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
		if err := s.cluster.Client.Get(ctx, client.ObjectKey{Name: name}, runtime); err != nil {
			return err
		}
		path := []string{"spec", "template", "metadata", "annotations", v1alpha1.AnnotationRuntimeRevision}
		if _, found, err := unstructured.NestedString(runtime.Object, path...); err != nil || !found {
			return errors.Join(errors.New("there is none"), err)
		}
		return nil
	})
}

// quiet is how long nothing of a TrainJob may change for it to be measured.
const quiet = 2 * time.Second

// settled returns what is kept of a TrainJob once all of it is there and does not change.
func (s *storages) settled(ctx context.Context, of keeping, ours bool) (kept, error) {
	var last kept
	since := time.Now()
	err := eventually(ctx, "what is kept of TrainJob "+of.trainJob(), func(ctx context.Context) error {
		is, err := s.read(ctx, of)
		if err != nil {
			return err
		}
		if !is.equal(last) {
			last, since = is, time.Now()
		}
		if len(is.trainJob) == 0 || len(is.configMap) == 0 || len(is.jobSet) == 0 || ours && len(is.snapshot) == 0 {
			return fmt.Errorf("TrainJob %d bytes, ConfigMap %d, JobSet %d, TrainingRuntimeSnapshot %d",
				len(is.trainJob), len(is.configMap), len(is.jobSet), len(is.snapshot))
		}
		if ours && !strings.Contains(string(is.configMap), v1alpha1.LabelRuntimeRevision) {
			return errors.New("the ConfigMap is not put in order yet")
		}
		if time.Since(since) < quiet {
			return errors.New("it still changes")
		}
		return nil
	})
	return last, err
}

func (k kept) equal(other kept) bool {
	return slices.Equal(k.runtime, other.runtime) && slices.Equal(k.trainJob, other.trainJob) &&
		slices.Equal(k.configMap, other.configMap) && slices.Equal(k.jobSet, other.jobSet) && slices.Equal(k.snapshot, other.snapshot)
}

// read reads what is in etcd now.
func (s *storages) read(ctx context.Context, of keeping) (kept, error) {
	var k kept
	name := of.trainJob()
	for _, object := range []struct {
		key  string
		into *[]byte
	}{
		{runtimeKey(of.runtime), &k.runtime},
		{keyOf(trainer.GroupVersion.Group, "trainjobs", s.namespace, name), &k.trainJob},
		{keyOf("", "configmaps", s.namespace, trainer.SnapshotConfigMap(name)), &k.configMap},
		{keyOf(trainer.JobSetGroupVersionKind.Group, "jobsets", s.namespace, name), &k.jobSet},
		{keyOf(v1alpha1.Group, "trainingruntimesnapshots", s.namespace, name), &k.snapshot},
	} {
		var err error
		if *object.into, err = s.etcd.value(ctx, object.key); err != nil {
			return k, err
		}
	}
	return k, nil
}

// runtimeKey is the key of a ClusterTrainingRuntime, which has no namespace.
func runtimeKey(name string) string {
	return "/registry/" + trainer.GroupVersion.Group + "/clustertrainingruntimes/" + name
}
