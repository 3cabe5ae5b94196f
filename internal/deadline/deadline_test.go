package deadline

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/builder"
)

// created is when the jobs of these tables were created.
var created = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return created.Add(time.Duration(seconds * float64(time.Second)))
}

func waiting(start time.Time, limit, rest time.Duration, source Source) Decision {
	return Decision{State: Waiting, Start: start, Limit: limit, Deadline: start.Add(limit), Source: source, RequeueAfter: rest}
}

// expired is the decision on a limit of one minute that is reached.
func expired(start time.Time, source Source) Decision {
	return Decision{State: Expired, Start: start, Limit: time.Minute, Deadline: start.Add(time.Minute), Source: source, RequeueAfter: time.Second}
}

func TestEvaluate(t *testing.T) {
	job := func() *builder.TrainJobBuilder { return builder.TrainJob("ns", "job").Created(created) }
	const (
		yes = metav1.ConditionTrue
		no  = metav1.ConditionFalse
	)
	for name, tc := range map[string]struct {
		job  *builder.TrainJobBuilder
		now  time.Time
		want Decision
	}{
		"no deadline": {job: job(), now: at(1e6)},
		"waiting asks for the exact rest": {
			job: job().Deadline(60).Stamp(at(0.25)), now: at(10.75),
			want: waiting(at(0.25), time.Minute, 49500*time.Millisecond, SourceSpec),
		},
		"suspend false is active": {
			job: job().Suspend(false).Deadline(60).Stamp(at(0)), now: at(10),
			want: waiting(at(0), time.Minute, 50*time.Second, SourceSpec),
		},
		"a nanosecond before the deadline it waits for a nanosecond": {
			job: job().Deadline(60).Stamp(at(0)), now: at(60).Add(-1),
			want: waiting(at(0), time.Minute, 1, SourceSpec),
		},
		"at the deadline it is expired": {
			job: job().Deadline(60).Stamp(at(0)), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"past the deadline it is expired": {
			job: job().Deadline(60).Stamp(at(0)), now: at(1e6),
			want: expired(at(0), SourceSpec),
		},
		"suspended counts nothing": {job: job().Suspended().Deadline(60), now: at(1e6)},
		"suspended counts nothing even with a stamp left over": {
			job: job().Suspended().Deadline(60).Stamp(at(0)), now: at(1e6),
		},
		"complete wins over expired": {
			job: job().Deadline(60).Stamp(at(0)).Condition(trainer.ConditionComplete, yes, "Done", at(59)), now: at(1e6),
		},
		"failed wins over expired": {
			job: job().Deadline(60).Stamp(at(0)).Condition(trainer.ConditionFailed, yes, "Crashed", at(59)), now: at(1e6),
		},
		"a Failed that is not true is not terminal": {
			job: job().Deadline(60).Stamp(at(0)).Condition(trainer.ConditionFailed, no, "Fine", at(59)), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"managed by somebody else counts nothing": {
			job: job().ManagedBy("kueue.x-k8s.io/multikueue").Deadline(60).Stamp(at(0)), now: at(1e6),
		},
		"managed by Trainer by name counts": {
			job: job().ManagedBy(trainer.ControllerName).Deadline(60).Stamp(at(0)), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"a stamp in the future, by skew, only makes it later": {
			job: job().Deadline(60).Stamp(at(30)), now: at(0),
			want: waiting(at(30), time.Minute, 90*time.Second, SourceSpec),
		},
		"a stamp further ahead than clocks differ is forged": {
			job: job().Deadline(60).StampText("9999-12-31T23:59:59Z"), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceSpec),
		},
		"a condition further ahead than clocks differ counts for nothing": {
			job: job().Deadline(60).Condition(trainer.ConditionSuspended, no, "Resumed", at(1000)), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceSpec),
		},
		"being deleted, held by a finalizer, it still counts": {
			job: job().Deleting(at(10)).Deadline(60).Stamp(at(0)), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"a garbage stamp is as good as none": {
			job: job().Deadline(60).StampText("yesterday"), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceSpec),
		},
		"an empty stamp is as good as none": {
			job: job().Deadline(60).StampText(""), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceSpec),
		},
		"without stamp and condition the creation counts": {
			job: job().Deadline(60), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"without a stamp the resume that Trainer saw counts": {
			job: job().Deadline(60).Condition(trainer.ConditionSuspended, no, "Resumed", at(100)), now: at(159),
			want: waiting(at(100), time.Minute, time.Second, SourceSpec),
		},
		"a stamp older than the resume that Trainer saw is stale": {
			job: job().Deadline(60).Stamp(at(0)).Condition(trainer.ConditionSuspended, no, "Resumed", at(100)), now: at(159),
			want: waiting(at(100), time.Minute, time.Second, SourceSpec),
		},
		"a stamp newer than the resume that Trainer saw counts": {
			job: job().Deadline(60).Stamp(at(200)).Condition(trainer.ConditionSuspended, no, "Resumed", at(100)), now: at(259),
			want: waiting(at(200), time.Minute, time.Second, SourceSpec),
		},
		"a stamp from before the creation came with a copy": {
			job: job().Deadline(60).Stamp(created.AddDate(-1, 0, 0)), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceSpec),
		},
		"resumed with a stamp that Trainer has not seen": {
			job: job().Deadline(60).Stamp(at(200)).Condition(trainer.ConditionSuspended, yes, "Suspended", at(0)), now: at(259),
			want: waiting(at(200), time.Minute, time.Second, SourceSpec),
		},
		"resumed unseen by the webhook and not yet by Trainer: not running": {
			job: job().Deadline(60).Condition(trainer.ConditionSuspended, yes, "Suspended", at(0)), now: at(1e6),
		},
		"resumed unseen with the stamp of the period before: not running": {
			job: job().Deadline(60).Stamp(at(10)).Condition(trainer.ConditionSuspended, yes, "Suspended", at(50)), now: at(1e6),
		},
		"a zone in the stamp is understood": {
			job: job().Deadline(60).StampText("2026-03-01T14:00:00.5+02:00"), now: at(0.5),
			want: waiting(at(0.5), time.Minute, time.Minute, SourceSpec),
		},
		"never stored, so never active": {job: builder.TrainJob("ns", "job").Deadline(60), now: at(0)},
		"the largest deadline": {
			job: job().Deadline(v1alpha1.MaxSeconds).Stamp(at(0)), now: at(0),
			want: waiting(at(0), v1alpha1.MaxSeconds*time.Second, v1alpha1.MaxSeconds*time.Second, SourceSpec),
		},
		"a deadline that would overflow counts as the largest": {
			job: job().Deadline(9223372037).Stamp(at(0)), now: at(60),
			want: waiting(at(0), v1alpha1.MaxSeconds*time.Second, v1alpha1.MaxSeconds*time.Second-time.Minute, SourceSpec),
		},
		"the largest integer counts as the largest deadline": {
			job: job().Deadline(math.MaxInt64).Stamp(at(0)), now: at(0),
			want: waiting(at(0), v1alpha1.MaxSeconds*time.Second, v1alpha1.MaxSeconds*time.Second, SourceSpec),
		},
		"zero is no deadline":     {job: job().Deadline(0), now: at(1e6)},
		"negative is no deadline": {job: job().Deadline(-1), now: at(1e6)},
		"by annotation": {
			job: job().DeadlineAnnotation("60").Stamp(at(0)), now: at(1),
			want: waiting(at(0), time.Minute, 59*time.Second, SourceAnnotation),
		},
		"the field wins over the annotation": {
			job: job().DeadlineAnnotation("5").Deadline(60).Stamp(at(0)), now: at(1),
			want: waiting(at(0), time.Minute, 59*time.Second, SourceSpec),
		},
		"who gave it is said": {
			job: job().Deadline(60).Stamp(at(0)).Annotation(v1alpha1.AnnotationActiveDeadlineSource, "LifecyclePolicy/x"), now: at(60),
			want: Decision{State: Expired, Start: at(0), Limit: time.Minute, Deadline: at(60), Source: SourceSpec, By: "LifecyclePolicy/x", RequeueAfter: time.Second},
		},
		"a run policy alone is Trainer's own": {job: job().RunPolicy(&trainer.Setting{Seconds: ptr.To[int64](5)}, nil).Stamp(at(0)), now: at(1e6)},
		"the annotation counts beside a run policy": {
			job: job().DeadlineAnnotation("60").RunPolicy(&trainer.Setting{Seconds: ptr.To[int64](5)}, nil).Stamp(at(0)), now: at(59),
			want: waiting(at(0), time.Minute, time.Second, SourceAnnotation),
		},
		"the annotation counts beside one that cannot be read": {
			job: job().DeadlineAnnotation("60").RunPolicy(&trainer.Setting{}, nil).Stamp(at(0)), now: at(60),
			want: expired(at(0), SourceAnnotation),
		},
		"the field counts beside a run policy": {
			job: job().Deadline(60).RunPolicy(&trainer.Setting{}, nil).Stamp(at(0)), now: at(60),
			want: expired(at(0), SourceSpec),
		},
		"none is no deadline":                    {job: job().DeadlineAnnotation("none"), now: at(1e6)},
		"a garbage annotation is no deadline":    {job: job().DeadlineAnnotation("1h"), now: at(1e6)},
		"a zero annotation is no deadline":       {job: job().DeadlineAnnotation("0"), now: at(1e6)},
		"an annotation over 64 bits is no limit": {job: job().DeadlineAnnotation("92233720368547758080"), now: at(1e6)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Evaluate(tc.job.Obj(), tc.now)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("Evaluate (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(int64(60), "", "2026-03-01T12:00:00.25Z", int8(-1), int64(0), int64(0), false)
	f.Add(int64(0), "60", "", int8(0), int64(100), int64(159), false)
	f.Add(int64(v1alpha1.MaxSeconds), "", "2026-03-01T12:00:00Z", int8(1), int64(50), int64(math.MaxInt32), false)
	f.Add(int64(math.MaxInt64), "0x10", "9999-12-31T23:59:59Z", int8(0), int64(-1), int64(1), true)
	f.Add(int64(math.MinInt64), "-1", "0001-01-01T00:00:00Z", int8(-1), int64(0), int64(-1), false)
	f.Fuzz(func(t *testing.T, seconds int64, annotation, stamp string, suspended int8, since, now int64, suspend bool) {
		b := builder.TrainJob("ns", "job").Created(created).Suspend(suspend).StampText(stamp)
		if seconds != 0 {
			b.Deadline(seconds)
		}
		if annotation != "" {
			b.DeadlineAnnotation(annotation)
		}
		since, now = since%1e9, now%1e9
		switch {
		case suspended == 0:
			b.Condition(trainer.ConditionSuspended, metav1.ConditionFalse, "Resumed", at(float64(since)))
		case suspended > 0:
			b.Condition(trainer.ConditionSuspended, metav1.ConditionTrue, "Suspended", at(float64(since)))
		}
		job := b.Obj()
		early, late := Evaluate(job, at(float64(now))), Evaluate(job, at(float64(now)+1))
		for _, got := range []Decision{early, late} {
			if (got.State == None) != (got == Decision{}) {
				t.Errorf("None and nothing else is empty: %+v", got)
			}
			if got.State != None && (got.RequeueAfter <= 0 || got.Limit < time.Second || got.Start.Before(created)) {
				t.Errorf("out of bounds: %+v", got)
			}
		}
		// What is far ahead now may count a second later; nothing else can make it later.
		parsed, _ := time.Parse(time.RFC3339Nano, stamp)
		ahead := parsed.After(at(float64(now))) || since > now
		if early.State > late.State && !ahead {
			t.Errorf("a second later it is %v after %v", late.State, early.State)
		}
		if early.State == Waiting && !ahead && Evaluate(job, early.Deadline).State != Expired {
			t.Errorf("not expired at its own deadline: %+v", early)
		}
	})
}

// A run policy is Trainer's to enforce: its end by that is never early, however far ahead the
// deadline is that stands beside it.
func TestEarlyBesideARunPolicy(t *testing.T) {
	for name, own := range map[string]*trainer.Setting{"readable": {Seconds: ptr.To[int64](5)}, "unreadable": {}} {
		job := builder.TrainJob("ns", "job").Created(at(0)).Stamp(at(0)).RunPolicy(own, nil)
		for where, job := range map[string]*trainer.TrainJob{"annotation": job.DeadlineAnnotation("3600").Obj(), "field": job.Deadline(3600).Obj()} {
			if Early(job, at(6)) {
				t.Errorf("%s, beside the %s: the end by a run policy is called early", name, where)
			}
		}
	}
}
