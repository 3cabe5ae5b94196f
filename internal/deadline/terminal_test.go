package deadline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/test/builder"
)

func cond(kind string, status metav1.ConditionStatus, reason string, when time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason, LastTransitionTime: metav1.NewTime(when)}
}

func TestConditions(t *testing.T) {
	const (
		yes = metav1.ConditionTrue
		no  = metav1.ConditionFalse
	)
	resumed := cond("Suspended", no, "Resumed", at(0))
	complete := cond("Complete", yes, "Done", at(50))
	failed := cond("Failed", yes, "Crashed", at(40))
	exceeded := cond("Failed", yes, "DeadlineExceeded", at(60))
	type list = []metav1.Condition
	for name, tc := range map[string]struct {
		// By default the job is active since 0 with a limit of 100 s, and it is 60.
		job       *builder.TrainJobBuilder
		stored    list
		written   list
		byTrainer bool
		want      list
	}{
		"an ordinary write":                          {stored: list{resumed}, written: list{resumed, complete}, byTrainer: true, want: list{resumed, complete}},
		"a stored Failed is dropped":                 {stored: list{resumed, failed}, written: list{resumed}, want: list{resumed, failed}},
		"a stored Complete is dropped with all else": {stored: list{complete}, written: nil, want: list{complete}},
		"a stored Failed turns false":                {stored: list{failed}, written: list{cond("Failed", no, "Fine", at(60)), resumed}, want: list{failed, resumed}},
		"a stored Failed gets another reason":        {stored: list{failed}, written: list{exceeded}, byTrainer: true, want: list{failed}},
		"a stored Failed gets a newer time":          {stored: list{failed}, written: list{cond("Failed", yes, "Crashed", at(60))}, want: list{failed}},
		"a stored Failed stays":                      {stored: list{failed}, written: list{failed, resumed}, want: list{failed, resumed}},
		"Complete comes after Failed":                {stored: list{failed}, written: list{failed, complete}, want: list{failed}},
		"Failed comes after Complete":                {stored: list{complete}, written: list{failed, complete}, want: list{complete}},
		"Failed replaces Complete":                   {stored: list{complete}, written: list{failed}, want: list{complete}},
		"a Failed that is not true may come":         {stored: list{complete}, written: list{complete, cond("Failed", no, "Fine", at(60))}, want: list{complete, cond("Failed", no, "Fine", at(60))}},
		"both come at once":                          {written: list{failed, resumed, complete}, want: list{resumed, complete}},
		"both are stored: the earlier one stays":     {stored: list{complete, failed}, written: list{complete, failed}, want: list{failed}},
		"both are stored at the same time":           {stored: list{failed, cond("Complete", yes, "Done", at(40))}, written: list{}, want: list{cond("Complete", yes, "Done", at(40))}},
		"Trainer finds the deadline early":           {written: list{resumed, exceeded}, byTrainer: true, want: list{resumed}},
		"another finds the deadline early":           {written: list{resumed, exceeded}, want: list{resumed, exceeded}},
		"Trainer is within the tolerance":            {job: builder.TrainJob("ns", "job").Created(created).Deadline(90).Stamp(created), written: list{exceeded}, byTrainer: true, want: list{exceeded}},
		"Trainer finds another failure":              {written: list{failed}, byTrainer: true, want: list{failed}},
		"Trainer fails a suspended job by deadline":  {job: builder.TrainJob("ns", "job").Created(created).Deadline(10).Suspended(), written: list{exceeded}, byTrainer: true, want: list{}},
		"Trainer fails one without a known start":    {job: builder.TrainJob("ns", "job").Created(created).Deadline(10), stored: list{cond("Suspended", yes, "Suspended", at(0))}, written: list{exceeded}, byTrainer: true, want: list{}},
		"managed by MultiKueue: nothing is kept":     {job: builder.TrainJob("ns", "job").ManagedBy("kueue.x-k8s.io/multikueue"), stored: list{failed}, written: list{}, want: list{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.job == nil {
				tc.job = builder.TrainJob("ns", "job").Created(created).Deadline(100).Stamp(created)
			}
			stored := tc.job.Obj()
			stored.Status.Conditions = tc.stored
			got := Conditions(stored, tc.written, tc.byTrainer, at(60))
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(sameTime)); diff != "" {
				t.Errorf("Conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, Conditions(stored, got, tc.byTrainer, at(60)), cmp.Comparer(sameTime)); diff != "" {
				t.Errorf("a second time (-first +second):\n%s", diff)
			}
		})
	}
}

func TestEarly(t *testing.T) {
	job := func() *builder.TrainJobBuilder {
		return builder.TrainJob("ns", "job").Created(at(-60)).Deadline(100).Stamp(created)
	}
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		now  time.Time
		want bool
	}{
		"more than the tolerance left":                          {job: job(), now: at(70).Add(-1), want: true},
		"exactly the tolerance left":                            {job: job(), now: at(70)},
		"past the deadline":                                     {job: job(), now: at(101)},
		"suspended":                                             {job: job().Suspended(), now: at(1e6), want: true},
		"suspended and finished":                                {job: job().Suspended().Condition("Failed", metav1.ConditionTrue, "Crashed", at(1)), now: at(1)},
		"finished":                                              {job: job().Condition("Complete", metav1.ConditionTrue, "Done", at(1)), now: at(1)},
		"without a deadline":                                    {job: builder.TrainJob("ns", "job").Created(created), now: at(1)},
		"managed by MultiKueue":                                 {job: job().ManagedBy("kueue.x-k8s.io/multikueue"), now: at(1)},
		"resumed unseen by Trainer, 2 s left":                   {job: job().Generation(2), now: at(98), want: true},
		"resumed unseen by Trainer, a second left":              {job: job().Generation(2), now: at(99)},
		"resumed as Trainer saw it, in its whole second":        {job: job().Generation(2).Condition("Suspended", metav1.ConditionFalse, "Resumed", at(-0.5)), now: at(71)},
		"resumed again unseen by Trainer":                       {job: job().Generation(2).Condition("Suspended", metav1.ConditionFalse, "Resumed", at(-5)), now: at(98), want: true},
		"never suspended, the API server's clock is 5 s behind": {job: job().Created(at(-5)).Generation(1), now: at(71)},
		"shorter than the tolerance, new":                       {job: builder.TrainJob("ns", "job").Created(created).Deadline(20), now: at(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Early(tc.job.Obj(), tc.now); got != tc.want {
				t.Errorf("Early = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWarnAt(t *testing.T) {
	for name, tc := range map[string]struct {
		decision Decision
		most     time.Duration
		want     time.Time
	}{
		"a tenth is less":  {waiting(at(0), time.Minute, 1, SourceSpec), 10 * time.Minute, at(54)},
		"a tenth is more":  {waiting(at(0), 1000*time.Minute, 1, SourceSpec), 10 * time.Minute, at(990 * 60)},
		"turned off":       {waiting(at(0), time.Minute, 1, SourceSpec), 0, time.Time{}},
		"nothing counts":   {Decision{}, time.Minute, time.Time{}},
		"expired is later": {expired(at(0), SourceSpec), time.Minute, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.decision.WarnAt(tc.most); !got.Equal(tc.want) {
				t.Errorf("WarnAt = %v, want %v", got, tc.want)
			}
		})
	}
}
