package list

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// kind is one of those that list reads.
type kind struct {
	// what names it for notes.
	what      string
	gvk       schema.GroupVersionKind
	namespace string
	selectors kubectl.Selectors
	shelf     holder
	// version is that of the last list; "" where that could not be read.
	version string
}

// lister reads what list shows.
type lister struct {
	options *kubectl.Options
	reader  *kubectl.Reader
	notes   *kubectl.Notes
	picture *picture
	// now is the time by the server's clock.
	now func(context.Context) time.Time
	// zone is in which times are shown.
	zone *time.Location
	// jobs are the TrainJobs; sides is what else is followed.
	jobs  *kind
	sides []*kind
}

func newLister(options *kubectl.Options, reader *kubectl.Reader) *lister {
	p, notes := newPicture(), &kubectl.Notes{}
	l := &lister{
		options: options, reader: reader, notes: notes, picture: p, zone: time.Local,
		now: func(ctx context.Context) time.Time { return reader.Now(ctx, notes) },
		jobs: &kind{
			what: "TrainJobs", gvk: trainer.GroupVersion.WithKind(trainer.TrainJobKind), namespace: options.Namespace,
			selectors: options.Selectors(), shelf: &p.jobs,
		},
		sides: []*kind{{what: "JobSets", gvk: trainer.JobSetGroupVersionKind, namespace: options.Namespace, shelf: &p.jobSets}},
	}
	for i, name := range runtimeKinds {
		runtimes := &kind{what: name + "s", gvk: trainer.GroupVersion.WithKind(name), shelf: &p.runtimes[i]}
		if name == trainer.TrainingRuntimeKind {
			runtimes.namespace = options.Namespace
		}
		l.sides = append(l.sides, runtimes)
	}
	return l
}

// read reads all. The error is that of the TrainJobs; what else cannot be read is noted. more tells whether
// to go on where there are no TrainJobs.
func (l *lister) read(ctx context.Context, more bool) error {
	if err := l.load(ctx, l.jobs); err != nil {
		return err
	}
	if len(l.picture.jobs.items) == 0 && !more {
		return nil
	}
	l.take(l.survey(ctx))
	for _, side := range l.sides {
		l.reader.Side(ctx, side.what, func() error { return l.load(ctx, side) }, l.notes)
	}
	l.accept(l.prove(ctx, l.picture.evidence(l.now(ctx))))
	return nil
}

// load lists all objects of a kind.
func (l *lister) load(ctx context.Context, k *kind) error {
	k.shelf.begin()
	version, err := l.reader.EachOf(ctx, k.gvk, k.namespace, k.selectors, k.shelf.begin, k.shelf.list)
	if err != nil {
		return err
	}
	k.shelf.replace()
	k.version = version
	return nil
}

// surveyed is what was found out of a cluster; nil for what could not be.
type surveyed struct {
	keeps     *bool
	signalbox *bool
	// workloads is the kind of Kueue's Workloads; nil where Kueue is not installed.
	workloads *schema.GroupVersionKind
}

// survey finds out what is installed.
func (l *lister) survey(ctx context.Context) surveyed {
	found := surveyed{}
	if installation := l.reader.Installed(ctx, l.notes); installation.Known {
		found.signalbox = &installation.Is
	}
	if trainers, known := l.reader.Capabilities(ctx, l.notes); known {
		found.keeps = &trainers.RuntimeSnapshot
	}
	if gvk, is := l.reader.Workloads(ctx, l.notes); is {
		found.workloads = &gvk
	}
	return found
}

// take takes over what was found out, and returns what is to be read from now on, too; nil for nothing. What
// could not be found out stays as it was known before.
func (l *lister) take(found surveyed) (news *kind) {
	if found.keeps != nil {
		l.picture.keeps = found.keeps
	}
	if found.signalbox != nil {
		l.picture.signalbox = *found.signalbox
	}
	if found.workloads == nil || l.picture.kueue {
		return nil
	}
	l.picture.kueue = true
	news = &kind{what: "Workloads", gvk: *found.workloads, namespace: l.options.Namespace, shelf: &l.picture.workloads}
	l.sides = append(l.sides, news)
	return news
}

// proof is what was filed of the runtimes of TrainJobs, by their UID.
type proof struct {
	// of are the TrainJobs that it was looked for.
	of          evidence
	filed, kept map[types.UID]string
	// denied are the reads that are not allowed; failed: another could not be made.
	denied map[string]bool
	failed bool
	// at is when it was looked for.
	at time.Time
}

// prove reads what was filed of the runtimes of TrainJobs.
func (l *lister) prove(ctx context.Context, e evidence) proof {
	if len(e.jobs) == 0 {
		return proof{}
	}
	found := proof{of: e, denied: map[string]bool{}, at: e.at}
	found.filed = l.gather(ctx, &found, "TrainingRuntimeSnapshots", v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind), e.filed)
	found.kept = l.gather(ctx, &found, "ConfigMaps", corev1.SchemeGroupVersion.WithKind("ConfigMap"), e.kept)
	return found
}

// accept takes over what was filed.
func (l *lister) accept(found proof) {
	maps.Copy(l.picture.filed, found.filed)
	maps.Copy(l.picture.kept, found.kept)
	maps.Copy(l.picture.denied, found.denied)
	l.picture.keptUnread = found.failed || len(l.picture.denied) > 0
	if found.failed {
		return
	}
	for uid := range found.of.jobs {
		l.picture.sought[uid] = found.at
	}
}

// gather reads all objects of a kind where the TrainJobs are, and returns the revisions that are found in
// those that belong to one. What cannot be read is put down in proof, and what was not allowed before is
// not tried again; of a kind that is not installed there are none.
func (l *lister) gather(ctx context.Context, proof *proof, what string, gvk schema.GroupVersionKind, of func(*unstructured.Unstructured) (*trainer.TrainJob, string)) (revisions map[types.UID]string) {
	revisions = map[types.UID]string{}
	for _, namespace := range proof.of.where() {
		request := what + "/" + namespace
		if proof.of.denied[request] {
			continue
		}
		l.reader.Side(ctx, what, func() error {
			_, err := l.reader.Each(ctx, gvk, namespace, kubectl.Selectors{}, func(object *unstructured.Unstructured) error {
				if job, revision := of(object); job != nil {
					revisions[job.UID] = revision
				}
				return nil
			})
			if kubectl.NotInstalled(err) {
				return nil
			}
			if apierrors.IsForbidden(err) {
				proof.denied[request] = true
			} else if err != nil {
				proof.failed = true
			}
			return err
		}, l.notes)
	}
	return revisions
}
