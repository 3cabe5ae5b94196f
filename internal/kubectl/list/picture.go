package list

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// picture is all that was read of a cluster to list its TrainJobs.
type picture struct {
	// signalbox: Signalbox is installed, or may be; kueue: Kueue is.
	signalbox, kueue bool
	// keeps tells whether the installed Trainer keeps the runtimes of TrainJobs; nil while that is not
	// known.
	keeps *bool

	jobs      shelf[*trainer.TrainJob]
	jobSets   shelf[*trainer.JobSet]
	workloads shelf[*unstructured.Unstructured]
	// runtimes are the ClusterTrainingRuntimes, and the TrainingRuntimes.
	runtimes [2]shelf[revised]
	// filed and kept are the revisions of what was filed of TrainJobs that are not sealed, by Signalbox
	// and by Trainer, by their UID; keptUnread tells that not all could be read.
	filed, kept map[types.UID]string
	keptUnread  bool
	// sought is when it was last looked for of each; denied are the reads that are not allowed.
	sought map[types.UID]time.Time
	denied map[string]bool

	// What follows is found anew for the next rows when objects have come, changed or gone: old.
	old         bool
	jobSetsOf   map[types.NamespacedName]*trainer.JobSet
	revisions   map[runtimeKey]string
	workloadsOf map[types.UID][]unstructured.Unstructured
	positions   map[types.UID]int
}

// runtimeKinds are the kinds of runtimes, in the order of the picture.
var runtimeKinds = [2]string{trainer.ClusterTrainingRuntimeKind, trainer.TrainingRuntimeKind}

func newPicture() *picture {
	return &picture{
		jobs:      shelf[*trainer.TrainJob]{reduce: jobOf},
		jobSets:   shelf[*trainer.JobSet]{reduce: jobSetOf},
		workloads: shelf[*unstructured.Unstructured]{reduce: workloadOf},
		runtimes:  [2]shelf[revised]{{reduce: revisedOf}, {reduce: revisedOf}},
		filed:     map[types.UID]string{},
		kept:      map[types.UID]string{},
		sought:    map[types.UID]time.Time{},
		denied:    map[string]bool{},
		signalbox: true,
	}
}

// stale has all that is found from the objects found anew when rows are made next.
func (p *picture) stale() { p.old = true }

// forget has it found anew for the next row already.
func (p *picture) forget() { p.jobSetsOf = nil }

// index finds what is looked up for each TrainJob.
func (p *picture) index() {
	p.old = false
	p.jobSetsOf = map[types.NamespacedName]*trainer.JobSet{}
	for _, jobSet := range p.jobSets.items {
		key := types.NamespacedName{Namespace: jobSet.Namespace, Name: jobSet.Name}
		// Of two of a name, which were not read at one time, the later one is there.
		if other := p.jobSetsOf[key]; other == nil || other.CreationTimestamp.Before(&jobSet.CreationTimestamp) {
			p.jobSetsOf[key] = jobSet
		}
	}
	p.revisions = map[runtimeKey]string{}
	for i := range p.runtimes {
		for _, runtime := range p.runtimes[i].items {
			p.revisions[runtime.key] = runtime.revision
		}
	}
	p.workloadsOf = map[types.UID][]unstructured.Unstructured{}
	all := make([]unstructured.Unstructured, 0, len(p.workloads.items))
	for _, workload := range p.workloads.items {
		all = append(all, *workload)
		if owner := metav1.GetControllerOfNoCopy(workload); owner != nil {
			p.workloadsOf[owner.UID] = append(p.workloadsOf[owner.UID], *workload)
		}
	}
	p.positions = kueue.Positions(all)
}

// row makes the row of a TrainJob, beside the objects as they were for the last rows: thousands may go at
// once.
func (p *picture) row(job *trainer.TrainJob, now time.Time) Row {
	if p.jobSetsOf == nil {
		p.index()
	}
	of := Beside{Signalbox: p.signalbox, Facts: p.facts(job)}
	workload := kueue.Newest(p.workloadsOf[job.UID], job)
	of.Queued = kubectl.InQueue(job, workload, p.kueue)
	if p.kueue {
		of.Queue = kueue.QueueOf(workload, job)
	}
	if workload != nil {
		of.Position = p.positions[workload.GetUID()]
	}
	return RowOf(job, of, now)
}

// facts gathers what is known of what the TrainJob is built from.
func (p *picture) facts(job *trainer.TrainJob) kubectl.Facts {
	return kubectl.Facts{
		Job:          job,
		Keeps:        p.keeps,
		JobSet:       p.jobSetsOf[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}],
		JobSetUnread: !p.jobSets.read,
		Filed:        p.filed[job.UID],
		Kept:         p.kept[job.UID],
		KeptUnread:   p.keptUnread,
		Live:         p.live(job),
	}
}

// live is the runtime of the TrainJob as it is now.
func (p *picture) live(job *trainer.TrainJob) kubectl.Live {
	ref := job.Spec.RuntimeRef
	if !ref.Known() {
		return kubectl.Live{}
	}
	key := runtimeKey{ref.GroupVersionKind().Kind, ref.Key(job.Namespace)}
	revision, found := p.revisions[key]
	read := false
	for i, kind := range runtimeKinds {
		read = read || kind == key.kind && p.runtimes[i].read
	}
	return kubectl.Live{Revision: revision, Gone: read && !found}
}

// rows returns the rows of all TrainJobs, sorted.
func (p *picture) rows(now time.Time) []Row {
	if p.old {
		p.index()
	}
	rows := make([]Row, 0, len(p.jobs.items))
	for _, job := range p.jobs.items {
		rows = append(rows, p.row(job, now))
	}
	Sort(rows)
	return rows
}

// unsealed returns the TrainJobs for which it counts what was filed of their runtime, and which has not
// been read yet: not those that are sealed, nor those that wait to be, nor any where Trainer does not
// build from it, nor those of which there was nothing a short time ago, or since they finished.
func (p *picture) unsealed(now time.Time) []*trainer.TrainJob {
	if p.keeps != nil && !*p.keeps {
		return nil
	}
	var jobs []*trainer.TrainJob
	for _, job := range p.jobs.items {
		_, filed := p.filed[job.UID]
		_, kept := p.kept[job.UID]
		at, sought := p.sought[job.UID]
		if filed || kept || sought && (job.Terminal() || now.Sub(at) < enough) {
			continue
		}
		if kubectl.SealedRevision(job) == "" && job.ManagedByTrainer() && !kubectl.Follows(job) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// evidence says what is to be looked for now, of what was filed of runtimes.
func (p *picture) evidence(now time.Time) evidence {
	e := evidenceOf(p.unsealed(now))
	e.at, e.denied = now, maps.Clone(p.denied)
	return e
}
