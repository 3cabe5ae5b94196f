package kueue

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestNewest(t *testing.T) {
	job := builder.TrainJob("ns", "job").Obj()
	earlier := builder.TrainJob("ns", "job").UID("uid-of-an-earlier-one").Obj()
	at := func(name string, second int) *builder.WorkloadBuilder {
		return builder.Workload(job).Named(name).Created(now.Add(time.Duration(second) * time.Second))
	}
	owner := metav1.OwnerReference{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "job", UID: job.UID}
	for name, tc := range map[string]struct {
		workloads []*builder.WorkloadBuilder
		want      string
	}{
		"none":                              {},
		"one":                               {workloads: []*builder.WorkloadBuilder{at("a", 0)}, want: "a"},
		"one without a creation time":       {workloads: []*builder.WorkloadBuilder{builder.Workload(job).Named("a")}, want: "a"},
		"the newest comes first":            {workloads: []*builder.WorkloadBuilder{at("a", 2), at("b", 0), at("c", 1)}, want: "a"},
		"the newest comes last":             {workloads: []*builder.WorkloadBuilder{at("a", 0), at("b", 1), at("c", 2)}, want: "c"},
		"of the same second, the first":     {workloads: []*builder.WorkloadBuilder{at("a", 1), at("b", 1)}, want: "a"},
		"the newest is being deleted":       {workloads: []*builder.WorkloadBuilder{at("a", 0), at("b", 1).Deleting(now)}, want: "a"},
		"the only one is being deleted":     {workloads: []*builder.WorkloadBuilder{at("a", 0).Deleting(now)}, want: "a"},
		"the newest is of a namesake":       {workloads: []*builder.WorkloadBuilder{at("a", 0), builder.Workload(earlier).Named("b").Created(now.Add(time.Hour))}, want: "a"},
		"the only one is of a namesake":     {workloads: []*builder.WorkloadBuilder{builder.Workload(earlier)}},
		"the only one is nobody's":          {workloads: []*builder.WorkloadBuilder{at("a", 0).OwnedBy(metav1.OwnerReference{})}},
		"the only one has it as some owner": {workloads: []*builder.WorkloadBuilder{at("a", 0).OwnedBy(owner)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var workloads []unstructured.Unstructured
			for _, workload := range tc.workloads {
				workloads = append(workloads, *workload.Obj())
			}
			got := ""
			if newest := Newest(workloads, job); newest != nil {
				got = newest.GetName()
			}
			if got != tc.want {
				t.Errorf("Newest = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIs(t *testing.T) {
	workload := func() *builder.WorkloadBuilder {
		return builder.Workload(builder.TrainJob("ns", "job").Obj()).Condition("Evicted", metav1.ConditionTrue, now)
	}
	text := workload().Obj()
	text.Object["status"] = map[string]any{"conditions": "text"}
	for name, tc := range map[string]struct {
		workload *unstructured.Unstructured
		want     bool
	}{
		"reserved":              {workload: workload().Condition("QuotaReserved", metav1.ConditionTrue, now).Obj(), want: true},
		"reserved and admitted": {workload: workload().Condition("QuotaReserved", metav1.ConditionTrue, now).Condition("Admitted", metav1.ConditionTrue, now).Obj(), want: true},
		"not reserved":          {workload: workload().Condition("QuotaReserved", metav1.ConditionFalse, now).Obj()},
		"not known":             {workload: workload().Condition("QuotaReserved", metav1.ConditionUnknown, now).Obj()},
		"admitted alone":        {workload: workload().Condition("Admitted", metav1.ConditionTrue, now).Obj()},
		"without the condition": {workload: workload().Obj()},
		"without a status":      {workload: builder.Workload(builder.TrainJob("ns", "job").Obj()).Obj()},
		"a status of text":      {workload: text},
		"nothing at all":        {workload: &unstructured.Unstructured{}},
	} {
		if got := Is(tc.workload, QuotaReserved); got != tc.want {
			t.Errorf("%s: Is = %v, want %v", name, got, tc.want)
		}
	}
}

func TestContentOf(t *testing.T) {
	const revision = "0123456789abcdef"
	job := builder.TrainJob("ns", "job").Obj()
	of := func(revision string) *builder.JobSetBuilder {
		return builder.JobSet(job).Annotation(v1alpha1.AnnotationRuntimeRevision, revision)
	}
	namesakes := builder.JobSet(builder.TrainJob("ns", "job").UID("another").Obj()).Annotation(v1alpha1.AnnotationRuntimeRevision, revision)
	deleting := func(b *builder.JobSetBuilder) *trainer.JobSet {
		jobSet, at := b.Obj(), metav1.NewTime(now)
		jobSet.DeletionTimestamp = &at
		return jobSet
	}
	for name, tc := range map[string]struct {
		jobSet *trainer.JobSet
		// want is of a sealed TrainJob, wantTakenOver of one that was there before.
		want, wantTakenOver Content
	}{
		"none":                            {jobSet: &trainer.JobSet{}, want: Other, wantTakenOver: Other},
		"runs, of the revision":           {jobSet: of(revision).Obj(), want: Snapshot, wantTakenOver: Snapshot},
		"runs, of another revision":       {jobSet: of("fedcba9876543210").Obj(), want: Snapshot, wantTakenOver: Snapshot},
		"runs, of no revision":            {jobSet: builder.JobSet(job).Obj(), want: Snapshot, wantTakenOver: Snapshot},
		"runs, being deleted":             {jobSet: deleting(of(revision)), want: Other, wantTakenOver: Other},
		"runs, of nobody":                 {jobSet: of(revision).Orphaned().Obj(), want: Other, wantTakenOver: Other},
		"runs, of a namesake":             {jobSet: namesakes.Obj(), want: Other, wantTakenOver: Other},
		"held back, of the revision":      {jobSet: of(revision).Suspended().Obj(), want: Snapshot, wantTakenOver: Snapshot},
		"held back, of another":           {jobSet: of("fedcba9876543210").Suspended().Obj(), want: Other, wantTakenOver: Other},
		"held back, of none":              {jobSet: builder.JobSet(job).Suspended().Obj(), want: Untold, wantTakenOver: Snapshot},
		"held back, of an empty one":      {jobSet: of("").Suspended().Obj(), want: Untold, wantTakenOver: Snapshot},
		"held back, being deleted":        {jobSet: deleting(of(revision).Suspended()), want: Other, wantTakenOver: Other},
		"held back, of none, a namesakes": {jobSet: builder.JobSet(builder.TrainJob("ns", "job").UID("another").Obj()).Suspended().Obj(), want: Other, wantTakenOver: Other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.jobSet)
			if err != nil {
				t.Fatal(err)
			}
			jobSet := &unstructured.Unstructured{Object: object}
			if got := ContentOf(jobSet, job, revision, true, true); got != tc.want {
				t.Errorf("ContentOf, sealed = %v, want %v", got, tc.want)
			}
			if got := ContentOf(jobSet, job, revision, false, true); got != tc.wantTakenOver {
				t.Errorf("ContentOf, taken over = %v, want %v", got, tc.wantTakenOver)
			}
			wantOlder := tc.want
			if tc.jobSet.Suspended() && tc.want != Other || name == "held back, of another" {
				wantOlder = Untold
			}
			if got := ContentOf(jobSet, job, revision, true, false); got != wantOlder {
				t.Errorf("ContentOf, of a Trainer that keeps no snapshots = %v, want %v", got, wantOlder)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{FromJobSet, Refused, FromJobSet} {
		metrics.Show(source)
	}
	want := strings.TrimLeft(`
# HELP signalbox_kueue_views_total Dry runs in which Kueue asked for other pods of a TrainJob than run, or will, by where the answer came from.
# TYPE signalbox_kueue_views_total counter
signalbox_kueue_views_total{source="jobset"} 2
signalbox_kueue_views_total{source="refused"} 1
signalbox_kueue_views_total{source="workload"} 0
`, "\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
	var none *Metrics
	none.Show(FromWorkload)
}
