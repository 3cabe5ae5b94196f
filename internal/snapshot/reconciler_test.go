package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

const (
	createFiled  = "create TrainingRuntimeSnapshot"
	patchFiled   = "patch TrainingRuntimeSnapshot"
	deleteFiled  = "delete TrainingRuntimeSnapshot"
	createConfig = "create ConfigMap"
	patchConfig  = "patch ConfigMap"
	deleteConfig = "delete ConfigMap"
	deleteJobSet = "delete JobSet"
)

// world makes the objects around a TrainJob that lives on one snapshot.
type world struct {
	t   testing.TB
	job *trainer.TrainJob
	s   *Snapshot
}

func newWorld(t testing.TB) world {
	w := world{t: t, s: take(t, torch()), job: builder.TrainJob("ns", "job").Obj()}
	w.s.SealedAt = sealTime.Truncate(time.Second)
	return w
}

// trainers is the ConfigMap as Trainer writes it of a runtime.
func (w world) trainers(runtime *builder.RuntimeBuilder) *builder.ConfigMapBuilder {
	return builder.ConfigMap(w.job, string(encode(runtime.Obj().Object))).Created(sealTime)
}

// config is the ConfigMap when all is in order.
func (w world) config() *builder.ConfigMapBuilder {
	return builder.ConfigMap(w.job, toYAML(w.t, w.s)).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Immutable().
		Annotation(v1alpha1.AnnotationSnapshotSource, Name(w.s.Source))
}

// filed is the TrainingRuntimeSnapshot when all is in order.
func (w world) filed(changes ...func(*v1alpha1.TrainingRuntimeSnapshot)) *v1alpha1.TrainingRuntimeSnapshot {
	object := w.s.Object(w.job)
	object.UID = "uid-of-filed"
	for _, change := range changes {
		change(object)
	}
	return object
}

// jobSet is the suspended JobSet that was built from a runtime of this revision.
func (w world) jobSet(revision string) *builder.JobSetBuilder {
	return builder.JobSet(w.job).Suspended().Annotation(v1alpha1.AnnotationRuntimeRevision, revision)
}

func ownerRef(apiVersion, kind string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "job", UID: uid, Controller: ptr.To(true)}
}

type row struct {
	job     *builder.TrainJobBuilder
	objects []client.Object
	// older is a Trainer that keeps no snapshots.
	older bool
	// after is how long ago the TrainJob was sealed; a minute when it is 0.
	after      time.Duration
	want       state
	wantWait   time.Duration
	wantWrites []string
}

// run looks twice: the second look finds nothing more to do.
func (r row) run(t *testing.T, s *Snapshot) {
	job := r.job.Obj()
	b := newBench(t, append(r.objects, job)...)
	b.setTrainer(t, !r.older)
	if r.after != 0 {
		b.clock.SetTime(s.SealedAt.Add(r.after))
	}
	for _, wantWrites := range [][]string{r.wantWrites, nil} {
		result, err := b.reconcile(t)
		if err != nil || result.RequeueAfter != r.wantWait {
			t.Errorf("Reconcile = %v, %v; want to look again after %v", result, err, r.wantWait)
		}
		b.wantWrites(t, wantWrites...)
		if diff := cmp.Diff(r.want, b.state(t, job, s)); diff != "" {
			t.Errorf("there is (-want +got):\n%s", diff)
		}
	}
	stored := get(t, b, &trainer.TrainJob{}, "job")
	if stored.ResourceVersion != "999" {
		t.Error("the TrainJob was written")
	}
}

func TestReconcileSealed(t *testing.T) {
	w := newWorld(t)
	active, older := func() *builder.TrainJobBuilder { return sealedJob(w.s) }, torch().Image("image:older")
	inOrder := state{ConfigMap: "right", Snapshot: "right", JobSet: "none"}
	for name, r := range map[string]row{
		"all in order":                                 {job: active(), objects: []client.Object{w.config().Obj(), w.filed()}, want: state{"right", "right", "none"}},
		"all missing":                                  {job: active(), want: inOrder, wantWrites: []string{createConfig, createFiled}},
		"all missing, suspended":                       {job: active().Suspended(), want: inOrder, wantWrites: []string{createConfig, createFiled}},
		"all missing at 5 s":                           {job: active(), after: 5 * time.Second, want: inOrder, wantWrites: []string{createConfig, createFiled}},
		"all missing before 5 s":                       {job: active(), after: 3 * time.Second, want: state{"none", "right", "none"}, wantWait: 2 * time.Second, wantWrites: []string{createFiled}},
		"all missing after 1 s":                        {job: active(), after: time.Second, want: state{"none", "right", "none"}, wantWait: time.Second, wantWrites: []string{createFiled}},
		"all missing at once":                          {job: active(), after: time.Millisecond, want: state{"none", "right", "none"}, wantWait: 100 * time.Millisecond, wantWrites: []string{createFiled}},
		"all missing just before 5 s":                  {job: active(), after: 4990 * time.Millisecond, want: state{"none", "right", "none"}, wantWait: 100 * time.Millisecond, wantWrites: []string{createFiled}},
		"all missing, resumed 2 s ago":                 {job: active().Stamp(w.s.SealedAt.Add(58 * time.Second)), want: state{"none", "right", "none"}, wantWait: 2 * time.Second, wantWrites: []string{createFiled}},
		"all missing, resumed 5 s ago":                 {job: active().Stamp(w.s.SealedAt.Add(55 * time.Second)), want: inOrder, wantWrites: []string{createConfig, createFiled}},
		"all missing, clocks skew":                     {job: active(), after: -time.Hour, want: state{"none", "right", "none"}, wantWait: 5 * time.Second, wantWrites: []string{createFiled}},
		"Trainer's ConfigMap of the same runtime":      {job: active(), objects: []client.Object{w.filed(), w.trainers(torch().Revision(w.s.Revision)).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"Trainer's ConfigMap of it, without our stamp": {job: active(), objects: []client.Object{w.filed(), w.trainers(torch()).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"Trainer's ConfigMap before 5 s":               {job: active(), after: time.Second, objects: []client.Object{w.filed(), w.trainers(older).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"Trainer's ConfigMap of an older runtime":      {job: active(), objects: []client.Object{w.filed(), w.trainers(older).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"the same, suspended":                          {job: active().Suspended(), objects: []client.Object{w.filed(), w.trainers(older).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap emptied":                            {job: active(), objects: []client.Object{w.filed(), w.trainers(older).Emptied().Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap unreadable":                         {job: active(), objects: []client.Object{w.filed(), builder.ConfigMap(w.job, "\t- {").Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap labelled, with other content":       {job: active(), objects: []client.Object{w.filed(), w.trainers(older).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap with another label":                 {job: active(), objects: []client.Object{w.filed(), w.config().Label(v1alpha1.LabelRuntimeRevision, "x").Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap without the label":                  {job: active(), objects: []client.Object{w.filed(), builder.ConfigMap(w.job, toYAML(t, w.s)).Immutable().Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap not immutable":                      {job: active(), objects: []client.Object{w.filed(), builder.ConfigMap(w.job, toYAML(t, w.s)).Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj()}, want: inOrder, wantWrites: []string{patchConfig}},
		"ConfigMap wrong for good":                     {job: active(), objects: []client.Object{w.filed(), w.trainers(older).Immutable().Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"ConfigMap labelled and wrong for good":        {job: active(), objects: []client.Object{w.filed(), w.trainers(older).Immutable().Label(v1alpha1.LabelRuntimeRevision, w.s.Revision).Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"ConfigMap of an earlier TrainJob of the name": {job: active(), objects: []client.Object{w.filed(), w.config().OwnedBy(ownerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "earlier")).Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"the same, before 5 s":                         {job: active(), after: time.Second, objects: []client.Object{w.filed(), w.config().OwnedBy(ownerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "earlier")).Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"ConfigMap of one in another version":          {job: active(), objects: []client.Object{w.filed(), w.trainers(older).OwnedBy(ownerRef("trainer.kubeflow.org/v2", "TrainJob", "earlier")).Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"ConfigMap orphaned with our label":            {job: active(), objects: []client.Object{w.filed(), w.config().OwnedBy(metav1.OwnerReference{}).Obj()}, want: inOrder, wantWrites: []string{deleteConfig, createConfig}},
		"ConfigMap of nobody":                          {job: active(), objects: []client.Object{w.filed(), builder.ConfigMap(w.job, "a").OwnedBy(metav1.OwnerReference{}).Obj()}, want: state{"wrong [owner label immutable source content]", "right", "none"}, wantWait: lookForRoom},
		"ConfigMap of somebody else":                   {job: active(), objects: []client.Object{w.filed(), w.config().OwnedBy(ownerRef("apps/v1", "Deployment", "d")).Obj()}, want: state{"wrong [owner]", "right", "none"}, wantWait: lookForRoom},
		"ConfigMap of a TrainJob of another group":     {job: active(), objects: []client.Object{w.filed(), w.config().OwnedBy(ownerRef("example.com/v1", "TrainJob", "d")).Obj()}, want: state{"wrong [owner]", "right", "none"}, wantWait: lookForRoom},
		"older Trainer":                                {job: active(), older: true, objects: []client.Object{w.trainers(older).Obj(), w.jobSet("older").Obj()}, want: state{"wrong [label immutable source content]", "right", "there"}, wantWrites: []string{createFiled}},
		"finished":                                     {job: active().Condition("Complete", metav1.ConditionTrue, "Done", sealTime), objects: []client.Object{w.trainers(older).Obj(), w.jobSet("older").Obj()}, want: state{"wrong [label immutable source content]", "right", "there"}, wantWrites: []string{createFiled}},
		"finished, nothing there":                      {job: active().Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", sealTime), want: state{"none", "right", "none"}, wantWrites: []string{createFiled}},
		"being deleted":                                {job: active().Deleting(sealTime), objects: []client.Object{w.trainers(older).Obj(), w.jobSet("older").Obj()}, want: state{"wrong [label immutable source content]", "none", "there"}},
		"managed by MultiKueue":                        {job: active().ManagedBy("kueue.x-k8s.io/multikueue"), objects: []client.Object{w.trainers(older).Obj()}, want: state{"wrong [label immutable source content]", "none", "none"}},
		"with a seal that cannot be read":              {job: active().Annotation(v1alpha1.AnnotationRuntimeSnapshot, "*"), want: state{"none", "none", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.run(t, w.s)
		})
	}
}

func TestReconcileFiles(t *testing.T) {
	w := newWorld(t)
	type object = v1alpha1.TrainingRuntimeSnapshot
	older := take(t, torch().Image("image:older"))
	right := state{ConfigMap: "right", Snapshot: "right", JobSet: "none"}
	anew := []string{deleteFiled, createFiled}
	for name, tc := range map[string]struct {
		filed      *object
		want       state
		wantWrites []string
	}{
		"missing":  {want: right, wantWrites: []string{createFiled}},
		"in order": {filed: w.filed(), want: right},
		"of other content": {filed: w.filed(func(o *object) {
			o.Spec.Revision, o.Spec.RuntimeSpec = older.Revision, older.Object(w.job).Spec.RuntimeSpec
		}), want: right, wantWrites: anew},
		"of another runtime":        {filed: w.filed(func(o *object) { o.Spec.Source.Name = "jax" }), want: right, wantWrites: anew},
		"of another kind":           {filed: w.filed(func(o *object) { o.Spec.Source.Kind = "TrainingRuntime" }), want: right, wantWrites: anew},
		"forged":                    {filed: w.filed(func(o *object) { o.Spec.RuntimeSpec.Raw = []byte(`{"template":{}}`) }), want: right, wantWrites: anew},
		"of an earlier TrainJob":    {filed: w.filed(func(o *object) { o.OwnerReferences[0].UID = "earlier" }), want: right, wantWrites: anew},
		"of nobody":                 {filed: w.filed(func(o *object) { o.OwnerReferences = nil }), want: right, wantWrites: anew},
		"without annotations":       {filed: w.filed(func(o *object) { o.Annotations = nil }), want: right, wantWrites: []string{patchFiled}},
		"with edited annotations":   {filed: w.filed(func(o *object) { o.Annotations[v1alpha1.AnnotationSnapshotSource] = "x" }), want: right, wantWrites: []string{patchFiled}},
		"with more annotations":     {filed: w.filed(func(o *object) { o.Annotations["example.com/a"] = "b" }), want: right},
		"with another time of seal": {filed: w.filed(func(o *object) { o.Spec.SealedAt = metav1.NewTime(sealTime.Add(time.Hour)) }), want: state{"right", "wrong [time]", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{w.config().Obj()}
			if tc.filed != nil {
				objects = append(objects, tc.filed)
			}
			row{job: sealedJob(w.s), objects: objects, want: tc.want, wantWrites: tc.wantWrites}.run(t, w.s)
		})
	}
}

// A person's annotations stay when ours are put back.
func TestReconcileKeepsOtherAnnotations(t *testing.T) {
	w := newWorld(t)
	b := newBench(t, sealedJob(w.s).Obj(), w.config().Obj(), w.filed(func(o *v1alpha1.TrainingRuntimeSnapshot) {
		o.Annotations = map[string]string{"example.com/a": "b"}
	}))
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"example.com/a": "b", v1alpha1.AnnotationSnapshotSource: "ClusterTrainingRuntime/torch", v1alpha1.AnnotationRuntimeSource: "ClusterTrainingRuntime/torch"}
	if diff := cmp.Diff(want, b.filed(t).Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestReconcileStaleJobSets(t *testing.T) {
	w := newWorld(t)
	active := func() *builder.TrainJobBuilder { return sealedJob(w.s) }
	stale := func() *builder.JobSetBuilder { return w.jobSet("0123456789abcdef") }
	notMine := stale().Obj()
	notMine.OwnerReferences[0].UID = "earlier"
	progressed := func(jobSet *trainer.JobSet) *trainer.JobSet {
		jobSet.Status.ReplicatedJobsStatus = []trainer.ReplicatedJobStatus{{}, {Succeeded: 1}}
		return jobSet
	}
	going := stale().Obj()
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: sealTime}, []string{"example.com/keep"}
	for name, tc := range map[string]struct {
		job    *builder.TrainJobBuilder
		jobSet *trainer.JobSet
		gone   bool
	}{
		"built from other content":                       {job: active(), jobSet: stale().Obj(), gone: true},
		"built from content without a revision":          {job: active(), jobSet: builder.JobSet(w.job).Suspended().Obj(), gone: true},
		"built from what is sealed":                      {job: active(), jobSet: w.jobSet(w.s.Revision).Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch").Obj()},
		"built from what claimed to be it":               {job: active(), jobSet: w.jobSet(w.s.Revision).Obj(), gone: true},
		"the same, before Trainer has looked":            {job: active().Condition("Suspended", metav1.ConditionTrue, "Suspended", sealTime), jobSet: w.jobSet(w.s.Revision).Obj()},
		"built from other content, and runs":             {job: active(), jobSet: builder.JobSet(w.job).Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef").Obj()},
		"built from other content, the TrainJob pauses":  {job: active().Suspended(), jobSet: stale().Obj(), gone: true},
		"without a revision, the TrainJob pauses":        {job: active().Suspended(), jobSet: builder.JobSet(w.job).Suspended().Obj()},
		"built from what is sealed, and pauses":          {job: active().Suspended(), jobSet: w.jobSet(w.s.Revision).Obj()},
		"the same, and it has done some":                 {job: active().Suspended(), jobSet: progressed(stale().Obj())},
		"built from other content, about to pause":       {job: active().Suspended(), jobSet: builder.JobSet(w.job).Annotation(v1alpha1.AnnotationRuntimeRevision, "0123456789abcdef").Obj()},
		"built from other content, the TrainJob is done": {job: active().Condition("Complete", metav1.ConditionTrue, "Done", sealTime), jobSet: stale().Obj()},
		"built from other content, of another TrainJob":  {job: active(), jobSet: notMine},
		"built from other content, of nobody":            {job: active(), jobSet: stale().Orphaned().Obj()},
		"built from other content, going already":        {job: active(), jobSet: going},
		"built from other content, managed elsewhere":    {job: active().ManagedBy("kueue.x-k8s.io/multikueue"), jobSet: stale().Obj()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := row{job: tc.job, objects: []client.Object{w.config().Obj(), w.filed(), tc.jobSet}, want: state{"right", "right", "there"}}
			if tc.gone {
				r.want.JobSet, r.wantWrites = "none", []string{deleteJobSet}
			}
			r.run(t, w.s)
		})
	}
}

// Trainer must not build the same again: first the ConfigMap says what is sealed.
func TestReconcileCorrectsBeforeItDeletesTheJobSet(t *testing.T) {
	w := newWorld(t)
	stale := w.jobSet("0123456789abcdef").Obj()
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		row{
			job: sealedJob(w.s), objects: []client.Object{w.filed(), w.trainers(torch().Image("image:older")).Obj(), stale.DeepCopy()},
			want: state{"right", "right", "none"}, wantWrites: []string{patchConfig, deleteJobSet},
		}.run(t, w.s)
	})
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		row{
			job: sealedJob(w.s), objects: []client.Object{w.filed(), stale.DeepCopy()}, after: 4 * time.Second,
			want: state{"none", "right", "there"}, wantWait: time.Second,
		}.run(t, w.s)
	})
}

// What was there before Signalbox, or is too large for a seal, lives on what Trainer keeps.
func TestReconcileAdopts(t *testing.T) {
	w := newWorld(t)
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch")
	}
	sealedElse := take(t, torch().Image("image:filed"))
	sealedElse.SealedAt = w.s.SealedAt
	filedElse := sealedElse.Object(w.job)
	other := w.trainers(builder.ClusterTrainingRuntime("jax")).Obj()
	adopted := row{want: state{"right", "right", "there"}, wantWrites: []string{patchConfig, createFiled}}
	nothing := state{"wrong [label immutable source content]", "none", "there"}
	for name, tc := range map[string]struct {
		row
		job     *builder.TrainJobBuilder
		objects []client.Object
		s       *Snapshot
	}{
		"running":                                {row: adopted, job: job(), objects: []client.Object{w.trainers(torch()).Obj(), builder.JobSet(w.job).Obj()}},
		"running since the revision was there":   {row: adopted, job: job(), objects: []client.Object{w.trainers(torch().Revision(w.s.Revision)).Obj(), builder.JobSet(w.job).Obj()}},
		"running with a wrong stamp":             {row: adopted, job: job(), objects: []client.Object{w.trainers(torch().Revision("x")).Obj(), builder.JobSet(w.job).Obj()}},
		"queued":                                 {row: adopted, job: job().Suspended(), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"paused":                                 {row: adopted, job: job().Suspended().StampText("x"), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"active, its JobSet not started":         {row: adopted, job: job(), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"with a seal that cannot be read":        {row: adopted, job: job().Annotation(v1alpha1.AnnotationRuntimeSnapshot, "*").Annotation(v1alpha1.AnnotationRuntimeSource, "x"), objects: []client.Object{w.trainers(torch()).Obj(), builder.JobSet(w.job).Obj()}},
		"waiting, its runtime follows":           {row: row{want: nothing}, job: job().Suspended().Annotation(v1alpha1.AnnotationRuntimeSource, "ClusterTrainingRuntime/torch"), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"nothing kept yet":                       {row: row{want: state{"none", "none", "none"}}, job: job()},
		"kept, broken":                           {row: row{want: nothing}, job: job(), objects: []client.Object{builder.ConfigMap(w.job, "\t- {").Obj(), w.jobSet("").Obj()}},
		"kept, of another runtime":               {row: row{want: nothing}, job: job(), objects: []client.Object{other, w.jobSet("").Obj()}},
		"kept for another TrainJob":              {row: row{want: state{"wrong [owner label immutable source content]", "none", "there"}}, job: job(), objects: []client.Object{w.trainers(torch()).OwnedBy(ownerRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "earlier")).Obj(), w.jobSet("").Obj()}},
		"older Trainer":                          {row: row{older: true, want: nothing}, job: job(), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"being deleted":                          {row: row{want: nothing}, job: job().Deleting(sealTime), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"managed by MultiKueue":                  {row: row{want: nothing}, job: job().ManagedBy("kueue.x-k8s.io/multikueue"), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"finished":                               {row: row{want: state{"wrong [label immutable source content]", "right", "there"}, wantWrites: []string{createFiled}}, job: job().Condition("Complete", metav1.ConditionTrue, "Done", sealTime), objects: []client.Object{w.trainers(torch()).Obj(), w.jobSet("").Obj()}},
		"filed before, ConfigMap edited":         {row: row{want: state{"right", "right", "there"}, wantWrites: []string{patchConfig}}, job: job(), objects: []client.Object{filedElse.DeepCopy(), w.trainers(torch()).Obj(), w.jobSet("").Obj()}, s: sealedElse},
		"filed before, ConfigMap gone":           {row: row{want: state{"right", "right", "there"}, wantWrites: []string{createConfig}}, job: job(), objects: []client.Object{filedElse.DeepCopy(), w.jobSet("").Obj()}, s: sealedElse},
		"filed for an earlier TrainJob":          {row: row{want: state{"right", "right", "none"}, wantWrites: []string{patchConfig, deleteFiled, createFiled}}, job: job(), objects: []client.Object{sealedElse.Object(builder.TrainJob("ns", "job").UID("earlier").Obj()), w.trainers(torch()).Obj()}},
		"filed, of another runtime":              {row: row{want: state{"right", "right", "none"}, wantWrites: []string{patchConfig, deleteFiled, createFiled}}, job: job(), objects: []client.Object{take(t, builder.ClusterTrainingRuntime("jax")).Object(w.job), w.trainers(torch()).Obj()}},
		"filed a moment ago, ConfigMap gone":     {row: row{after: 2 * time.Second, want: state{"none", "right", "none"}, wantWait: 2 * time.Second}, job: job().Stamp(w.s.SealedAt.Add(-time.Hour)), objects: []client.Object{w.filed()}},
		"filed, forged":                          {row: row{want: state{"right", "right", "none"}, wantWrites: []string{patchConfig, deleteFiled, createFiled}}, job: job(), objects: []client.Object{w.filed(func(o *v1alpha1.TrainingRuntimeSnapshot) { o.Spec.Revision = sealedElse.Revision }), w.trainers(torch()).Obj()}},
		"filed before, older Trainer since then": {row: row{older: true, want: state{"none", "right", "none"}}, job: job(), objects: []client.Object{w.filed()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := tc.row, w.s
			r.job, r.objects = tc.job, tc.objects
			if tc.s != nil {
				s = tc.s
			}
			r.run(t, s)
		})
	}
}

// A correction gives the content and leaves what others put there.
func TestReconcileCorrectsInPlace(t *testing.T) {
	w := newWorld(t)
	before := w.trainers(torch().Image("image:older")).Label("example.com/a", "b").Obj()
	before.Data["other"] = "kept"
	b := newBench(t, sealedJob(w.s).Obj(), w.filed(), before)
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	got := b.configMap(t)
	want := map[string]string{"runtime": toYAML(t, w.s), "other": "kept"}
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if got.UID != before.UID || got.Labels["example.com/a"] != "b" || len(got.OwnerReferences) != 1 {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
}

// What holds the content already keeps Trainer's own text.
func TestReconcileOnlyLabelsWhatIsRight(t *testing.T) {
	w := newWorld(t)
	before := w.trainers(torch().Revision(w.s.Revision).Container("resources", map[string]any{})).Obj()
	b := newBench(t, sealedJob(w.s).Obj(), w.filed(), before)
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Data, b.configMap(t).Data); diff != "" {
		t.Errorf("data (-before +after):\n%s", diff)
	}
	if got := testutil.ToFloat64(b.Metrics.writes.WithLabelValues("ConfigMap", "label")); got != 1 {
		t.Errorf("counted %v labels, want 1", got)
	}
}

func TestReconcileCreatesTheConfigMapOfTrainer(t *testing.T) {
	w := newWorld(t)
	b := newBench(t, sealedJob(w.s).Obj(), w.filed())
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "job-runtime-snapshot",
			Labels:      map[string]string{"lifecycle.trainer.kubeflow.org/runtime-revision": w.s.Revision},
			Annotations: map[string]string{"trainer.kubeflow.org/snapshot-source": "ClusterTrainingRuntime/torch"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "job", UID: "uid-of-job", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Data:      map[string]string{"runtime": toYAML(t, w.s)},
		Immutable: ptr.To(true),
	}
	got := b.configMap(t)
	got.TypeMeta, got.ResourceVersion = metav1.TypeMeta{}, ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
}

// scenes are states from which each kind of write happens, with the writes.
func scenes(w world) map[string]struct {
	objects []client.Object
	writes  []string
} {
	type scene = struct {
		objects []client.Object
		writes  []string
	}
	older := torch().Image("image:older")
	return map[string]scene{
		"nothing there": {writes: []string{createConfig, createFiled}},
		"all of it wrong": {
			objects: []client.Object{
				w.trainers(older).Obj(), w.jobSet("0123456789abcdef").Obj(),
				w.filed(func(o *v1alpha1.TrainingRuntimeSnapshot) { o.OwnerReferences[0].UID = "earlier" }),
			},
			writes: []string{patchConfig, deleteJobSet, deleteFiled, createFiled},
		},
		"wrong for good": {
			objects: []client.Object{w.trainers(older).Immutable().Obj(), w.filed()},
			writes:  []string{deleteConfig, createConfig},
		},
	}
}

// What the API server answers once must not be the end of it.
func TestReconcileTriesAgain(t *testing.T) {
	w := newWorld(t)
	all := scenes(w)
	annotated := all["wrong for good"]
	annotated.objects = []client.Object{w.config().Obj(), w.filed(func(o *v1alpha1.TrainingRuntimeSnapshot) { o.Annotations = nil })}
	annotated.writes = []string{patchFiled}
	all["annotations gone"] = annotated
	faults := map[string]error{
		"500":       apierrors.NewInternalError(errors.New("etcd is away")),
		"409":       apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "job", errors.New("changed")),
		"exists":    apierrors.NewAlreadyExists(schema.GroupResource{Resource: "things"}, "job"),
		"timed out": context.DeadlineExceeded,
		"404":       apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "job"),
	}
	for name, scene := range all {
		for _, write := range scene.writes {
			for answer, fault := range faults {
				for _, lost := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s answers %s, done %v", name, write, answer, lost), func(t *testing.T) {
						t.Parallel()
						var objects []client.Object
						for _, object := range scene.objects {
							objects = append(objects, object.DeepCopyObject().(client.Object))
						}
						job := sealedJob(w.s).Obj()
						b := newBench(t, append(objects, job)...)
						answered := false
						once := func(got string) error {
							if got == write && !answered {
								answered = true
								return fault
							}
							return nil
						}
						if lost {
							b.lost = once
						} else {
							b.fault = once
						}
						result, err := b.reconcile(t)
						if !answered {
							t.Fatal("the write did not come")
						}
						switch {
						case apierrors.IsNotFound(fault):
							// Gone is what a deletion wants.
						case apierrors.IsAlreadyExists(fault):
							again := firstLook
							if strings.Contains(write, v1alpha1.TrainingRuntimeSnapshotKind) {
								again = catchUp
							}
							if err != nil || result.RequeueAfter != again {
								t.Errorf("first look = %v, %v; want another one after %s", result, err, again)
							}
						case !errors.Is(err, fault) || result.RequeueAfter != 0:
							t.Errorf("first look = %v, %v; want error %v", result, err, fault)
						}
						for range 3 {
							if _, err = b.reconcile(t); err != nil {
								t.Errorf("later error %v", err)
							}
						}
						got := b.state(t, job, w.s)
						want := state{"right", "right", "none"}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("there is (-want +got):\n%s", diff)
						}
						b.writes = nil
						if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
							t.Errorf("last look = %v, %v", result, err)
						}
						b.wantWrites(t)
					})
				}
			}
		}
	}
}

// Nothing comes into a namespace that goes, and that is no error.
func TestReconcileInATerminatingNamespace(t *testing.T) {
	w := newWorld(t)
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "job", errors.New("unable to create new content in namespace ns because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	for write, objects := range map[string][]client.Object{
		createFiled:  {w.config().Obj()},
		createConfig: {w.filed()},
	} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, append(objects, sealedJob(w.s).Obj())...)
			tried := false
			b.fault = func(got string) error {
				tried = tried || got == write
				return terminating
			}
			if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) || !tried {
				t.Errorf("Reconcile = %v, %v, tried %v; want nothing more", result, err, tried)
			}
			b.wantWrites(t)
		})
	}
	t.Run("any other refusal is an error", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, sealedJob(w.s).Obj())
		b.fault = func(string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "job", errors.New("exceeded quota"))
		}
		if _, err := b.reconcile(t); !apierrors.IsForbidden(err) {
			t.Errorf("error %v, want Forbidden", err)
		}
	})
}

// The cache may still have a TrainJob that is gone: for that one nothing is written.
func TestReconcileConfirmsTheTrainJob(t *testing.T) {
	w := newWorld(t)
	for name, stored := range map[string]*builder.TrainJobBuilder{
		"created anew":  sealedJob(w.s).UID("another"),
		"gone":          nil,
		"being deleted": sealedJob(w.s).Deleting(sealTime),
	} {
		for scene, is := range scenes(w) {
			t.Run(name+", "+scene, func(t *testing.T) {
				t.Parallel()
				var objects []client.Object
				for _, object := range is.objects {
					objects = append(objects, object.DeepCopyObject().(client.Object))
				}
				if stored != nil {
					objects = append(objects, stored.Obj())
				}
				b := newBench(t, objects...)
				b.cachedJob = sealedJob(w.s).Obj()
				if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
					t.Errorf("Reconcile = %v, %v; want nothing", result, err)
				}
				b.wantWrites(t)
			})
		}
	}
}

// Trainer or a person writes between our read and our write: theirs is not lost, and the next
// look finds it.
func TestReconcileLosesNothingOfOthers(t *testing.T) {
	w := newWorld(t)
	older := torch().Image("image:older")
	t.Run("the JobSet was resumed meanwhile", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, sealedJob(w.s).Obj(), w.config().Obj(), w.filed(), w.jobSet("0123456789abcdef").Obj())
		b.fault = func(write string) error {
			resumed := b.jobSetThere(t)
			resumed.Spec.Suspend = nil
			return b.store.Update(t.Context(), resumed)
		}
		if _, err := b.reconcile(t); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want Conflict", err)
		}
		if _, err := b.reconcile(t); err != nil || b.jobSetThere(t) == nil {
			t.Errorf("error %v; the JobSet that runs is there: %v", err, b.jobSetThere(t) != nil)
		}
		b.wantWrites(t)
	})
	t.Run("the ConfigMap was written meanwhile", func(t *testing.T) {
		t.Parallel()
		job := sealedJob(w.s).Obj()
		b := newBench(t, job, w.filed(), w.trainers(older).Obj())
		raced := false
		b.fault = func(write string) error {
			if raced || write != patchConfig {
				return nil
			}
			raced = true
			config := b.configMap(t)
			config.Data["other"] = "kept"
			return b.store.Update(t.Context(), config)
		}
		if _, err := b.reconcile(t); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want Conflict", err)
		}
		if _, err := b.reconcile(t); err != nil || b.configMap(t).Data["other"] != "kept" || b.state(t, job, w.s).ConfigMap != "right" {
			t.Errorf("error %v, ConfigMap %+v", err, b.configMap(t))
		}
	})
	t.Run("Trainer created the ConfigMap meanwhile", func(t *testing.T) {
		t.Parallel()
		job := sealedJob(w.s).Obj()
		b := newBench(t, job, w.filed())
		b.fault = func(write string) error {
			if write != createConfig {
				return nil
			}
			return b.store.Create(t.Context(), w.trainers(older).Obj())
		}
		if result, err := b.reconcile(t); err != nil || result.RequeueAfter != firstLook {
			t.Errorf("first look = %v, %v; want another one after %s", result, err, firstLook)
		}
		if _, err := b.reconcile(t); err != nil || b.state(t, job, w.s).ConfigMap != "right" {
			t.Errorf("error %v, ConfigMap %s", err, b.state(t, job, w.s).ConfigMap)
		}
		b.wantWrites(t, patchConfig)
	})
	t.Run("the ConfigMap was replaced meanwhile", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, sealedJob(w.s).Obj(), w.filed(), w.trainers(older).Immutable().Obj())
		b.fault = func(write string) error {
			if write != deleteConfig {
				return nil
			}
			if err := b.store.Delete(t.Context(), b.configMap(t)); err != nil {
				return err
			}
			replaced := w.config().Obj()
			replaced.UID = "replaced"
			return b.store.Create(t.Context(), replaced)
		}
		if _, err := b.reconcile(t); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want Conflict", err)
		}
		if _, err := b.reconcile(t); err != nil || b.configMap(t).UID != "replaced" {
			t.Errorf("error %v, ConfigMap %+v", err, b.configMap(t).ObjectMeta)
		}
		b.wantWrites(t)
	})
}

// Every read that fails is told, and nothing is written on a guess.
func TestReconcileCannotRead(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("etcd is away")
	older := w.trainers(torch().Image("image:older"))
	failing := func(b *bench, live bool, kind string) {
		get := func(ctx context.Context, store client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if b.kindOf(object) == kind {
				return broken
			}
			return store.Get(ctx, key, object, options...)
		}
		if live {
			b.Live = interceptor.NewClient(b.store, interceptor.Funcs{Get: get})
			return
		}
		b.Client = interceptor.NewClient(b.store, interceptor.Funcs{Get: get, Create: b.create})
	}
	unsealed := builder.TrainJob("ns", "job").Runtime("ClusterTrainingRuntime", "torch")
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		live bool
		kind string
		want string
	}{
		"TrainJob in the cache":           {job: sealedJob(w.s), kind: "TrainJob", want: "etcd is away"},
		"TrainingRuntimeSnapshot":         {job: sealedJob(w.s), live: true, kind: "TrainingRuntimeSnapshot", want: "read TrainingRuntimeSnapshot: etcd is away"},
		"ConfigMap":                       {job: sealedJob(w.s), live: true, kind: "ConfigMap", want: "read ConfigMap: etcd is away"},
		"TrainJob":                        {job: sealedJob(w.s), live: true, kind: "TrainJob", want: "read TrainJob: etcd is away"},
		"ConfigMap of one without a seal": {job: unsealed, live: true, kind: "ConfigMap", want: "etcd is away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.job.Obj(), w.filed(), older.Obj())
			if tc.job == unsealed {
				b = newBench(t, tc.job.Obj(), older.Obj())
			}
			failing(b, tc.live, tc.kind)
			if _, err := b.reconcile(t); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			b.wantWrites(t)
		})
	}
	t.Run("CRD", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, sealedJob(w.s).Obj())
		b.Trainer = &trainer.Detector{CRDs: interceptor.NewClient(b.store, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}})}
		if _, err := b.reconcile(t); !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
		b.wantWrites(t)
	})
}

func TestReconcileForgetsWhatIsGone(t *testing.T) {
	b := newBench(t)
	if result, err := b.reconcile(t); err != nil || result != (reconcile.Result{}) {
		t.Errorf("Reconcile = %v, %v; want nothing", result, err)
	}
}

// After an upgrade of Trainer, what it reads then is put in order.
func TestReconcileFollowsTheInstalledTrainer(t *testing.T) {
	w := newWorld(t)
	job := sealedJob(w.s).Obj()
	b := newBench(t, job)
	b.setTrainer(t, false)
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	b.wantWrites(t, createFiled)
	b.setTrainer(t, true)
	if _, err := b.reconcile(t); err != nil {
		t.Fatal(err)
	}
	b.wantWrites(t, createConfig)
}

func TestAllTrainJobs(t *testing.T) {
	b := newBench(t, builder.TrainJob("ns", "a").Obj(), builder.TrainJob("other", "b").Obj())
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}, {NamespacedName: client.ObjectKey{Namespace: "other", Name: "b"}}}
	if diff := cmp.Diff(want, b.all(t.Context(), nil)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
