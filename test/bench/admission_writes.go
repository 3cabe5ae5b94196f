package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// Names of the writes, as in the tables.
const (
	writeCreate    = "CREATE, active"
	writeRow       = "CREATE, active, in a row"
	writeSuspended = "CREATE, suspended"
	writeResume    = "first resume"
	writeSuspend   = "suspend"
	writeAgain     = "later resume"
	writeLabel     = "label of a TrainJob"
	writeStatus    = "status of a TrainJob"
	writeRuntime   = "image of a runtime"
	writeConfigMap = "ConfigMap"
	writeJobSet    = "JobSet of others"
)

// write is one kind of write. All are made by one client, one after the other.
type write struct {
	name string
	// prepare makes the write number i ready to be sent, and what is to be done after it outside of
	// the measured time; nil for nothing.
	prepare func(i int) (send, after func(context.Context) error)
	// seals tells that it makes a TrainJob active for the first time: then the reconciler has to write.
	seals bool
	// pause is the time from one write to the next; 0 where the next one comes at once.
	pause time.Duration
}

// pause is about how long the reconciler takes for what it writes for a TrainJob: on a machine of
// few processors that would be measured with the next write.
const pause = 40 * time.Millisecond

// writes are those of one phase, in their order: each is made for as many objects, before the next
// one is.
type writes struct {
	cluster   *cluster.Cluster
	namespace string
	// runtime is the runtime of the TrainJobs, kept as Trainer keeps it in their ConfigMaps.
	runtime string
	kept    string
}

func (w *writes) all() []write {
	return []write{
		{name: writeCreate, prepare: w.create("job", nil), seals: true, pause: pause},
		{name: writeRow, prepare: w.create("row", nil), seals: true},
		{name: writeSuspended, prepare: w.create("waiting", map[string]any{"suspend": true})},
		{name: writeResume, prepare: w.patch("waiting", `{"spec":{"suspend":false}}`), seals: true, pause: pause},
		{name: writeSuspend, prepare: w.patch("waiting", `{"spec":{"suspend":true}}`)},
		{name: writeAgain, prepare: w.patch("waiting", `{"spec":{"suspend":false}}`)},
		{name: writeLabel, prepare: w.patch("job", `{"metadata":{"labels":{"team":"a"}}}`)},
		{name: writeStatus, prepare: w.status},
		{name: writeRuntime, prepare: w.edit},
		{name: writeConfigMap, prepare: w.configMap},
		{name: writeJobSet, prepare: w.jobSet},
	}
}

// create makes TrainJobs, and in place of Trainer, whose controller is paused, the ConfigMap of
// each: as long as there is none, the reconciler looks for it.
func (w *writes) create(prefix string, spec map[string]any) func(i int) (send, after func(context.Context) error) {
	return func(i int) (send, after func(context.Context) error) {
		job := trainJob(w.namespace, nameOf(prefix, i), w.runtime, spec)
		send = func(ctx context.Context) error { return w.cluster.Client.Create(ctx, job) }
		after = func(ctx context.Context) error {
			return w.cluster.Client.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.namespace, Name: trainer.SnapshotConfigMap(job.GetName()),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))},
				},
				Data: map[string]string{trainer.SnapshotKey: w.kept},
			})
		}
		return send, after
	}
}

func (w *writes) patch(prefix, patch string) func(i int) (send, after func(context.Context) error) {
	return func(i int) (send, after func(context.Context) error) {
		job, patch := trainJob(w.namespace, nameOf(prefix, i), w.runtime, nil), client.RawPatch(types.MergePatchType, []byte(patch))
		return func(ctx context.Context) error { return w.cluster.Client.Patch(ctx, job, patch) }, nil
	}
}

func (w *writes) status(i int) (send, after func(context.Context) error) {
	job := trainJob(w.namespace, nameOf("job", i), w.runtime, nil)
	patch := client.RawPatch(types.MergePatchType, []byte(
		`{"status":{"jobsStatus":[{"name":"node","ready":1,"succeeded":0,"failed":0,"active":1,"suspended":0}]}}`))
	return func(ctx context.Context) error { return w.cluster.Client.Status().Patch(ctx, job, patch) }, nil
}

func (w *writes) edit(i int) (send, after func(context.Context) error) {
	runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
	runtime.SetName(w.runtime)
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil,
		`[{"op":"replace","path":"/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image","value":"example.com/image:edit-%d"}]`, i))
	return func(ctx context.Context) error { return w.cluster.Client.Patch(ctx, runtime, patch) }, nil
}

func (w *writes) configMap(i int) (send, after func(context.Context) error) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: foreign}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"key":"%d"}}`, i))
	return func(ctx context.Context) error { return w.cluster.Client.Patch(ctx, config, patch) }, nil
}

func (w *writes) jobSet(i int) (send, after func(context.Context) error) {
	jobSet := foreignJobSet(w.namespace)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/note":"%d"}}}`, i))
	return func(ctx context.Context) error { return w.cluster.Client.Patch(ctx, jobSet, patch) }, nil
}

func nameOf(prefix string, i int) string { return fmt.Sprintf("%s-%04d", prefix, i) }

// foreign names what no TrainJob owns.
const foreign = "foreign"

// foreignJobSet is one that is suspended: no pod of it runs.
func foreignJobSet(namespace string) *unstructured.Unstructured {
	jobSet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"suspend": true,
		"replicatedJobs": []any{map[string]any{
			"name": "node",
			"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "node", "image": "example.com/image:1"}},
			}}}},
		}},
	}}}
	jobSet.SetGroupVersionKind(trainer.JobSetGroupVersionKind)
	jobSet.SetNamespace(namespace)
	jobSet.SetName(foreign)
	return jobSet
}

// begin makes what a phase needs: the runtime, as new, the ConfigMap and the JobSet of others. It
// returns when Trainer knows the runtime.
func (w *writes) begin(ctx context.Context) error {
	runtime := runtimeOf(w.runtime, 2000)
	for _, object := range []client.Object{
		runtime, foreignJobSet(w.namespace),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: foreign}},
	} {
		if err := w.cluster.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	text, err := yaml.Marshal(runtime.Object)
	if err != nil {
		return err
	}
	w.kept = string(text)
	return eventually(ctx, "Trainer to know the runtime", func(ctx context.Context) error {
		return w.cluster.Client.Create(ctx, trainJob(w.namespace, "probe", w.runtime, nil), client.DryRunAll)
	})
}

// end removes all that the phase has made, and returns when it is gone.
func (w *writes) end(ctx context.Context) error {
	kinds := []*unstructured.Unstructured{
		trainJob("", "", "", nil), snapshotObject(), foreignJobSet(""), {Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
	}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	for _, kind := range kinds {
		if err := w.cluster.Client.DeleteAllOf(ctx, kind, client.InNamespace(w.namespace), background); err != nil {
			return err
		}
	}
	for _, kind := range kinds {
		if err := w.counts(ctx, kind, 0); err != nil {
			return err
		}
	}
	runtime := trainer.NewRuntime(trainer.ClusterTrainingRuntimeKind)
	runtime.SetName(w.runtime)
	if err := w.cluster.Client.Delete(ctx, runtime); err != nil {
		return err
	}
	return eventually(ctx, "the end of the runtime", func(ctx context.Context) error {
		err := w.cluster.Client.Get(ctx, client.ObjectKeyFromObject(runtime), runtime)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// counts waits until there are so many objects of a kind, with these labels.
func (w *writes) counts(ctx context.Context, of *unstructured.Unstructured, want int, options ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(of.GroupVersionKind())
	return eventually(ctx, fmt.Sprintf("%d objects %s", want, of.GetKind()), func(ctx context.Context) error {
		if err := w.cluster.Client.List(ctx, list, append(options, client.InNamespace(w.namespace))...); err != nil {
			return err
		}
		if len(list.Items) != want {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		return nil
	})
}
