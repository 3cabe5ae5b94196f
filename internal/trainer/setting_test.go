package trainer_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// decoders are the ways in which a TrainJob is read here.
var decoders = map[string]func(document string, job *trainer.TrainJob) error{
	"by the standard library": func(document string, job *trainer.TrainJob) error { return json.Unmarshal([]byte(document), job) },
	"by apimachinery":         func(document string, job *trainer.TrainJob) error { return kjson.Unmarshal([]byte(document), job) },
	"by the converter": func(document string, job *trainer.TrainJob) error {
		var object map[string]any
		if err := kjson.Unmarshal([]byte(document), &object); err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object, job)
	},
}

// A field of a later Trainer is of a type that nobody knows yet: whatever it is, the rest of the
// TrainJob is read, and that the field is set.
func TestFieldsOfALaterTrainer(t *testing.T) {
	type own struct {
		deadline *trainer.Setting
		ttl      bool
	}
	set, number := &trainer.Setting{}, func(seconds int64) *trainer.Setting { return &trainer.Setting{Seconds: &seconds} }
	policy := func(value string) string { return `"runPolicy":` + value }
	for spec, want := range map[string]own{
		``:                                     {},
		policy(`{"activeDeadlineSeconds":60}`): {deadline: number(60)},
		policy(`{"activeDeadlineSeconds":0}`):  {deadline: number(0)},
		policy(`{"activeDeadlineSeconds":-1}`): {deadline: number(-1)},
		policy(`{"activeDeadlineSeconds":9223372036854775807}`):                             {deadline: number(9223372036854775807)},
		policy(`{"activeDeadlineSeconds":true}`):                                            {deadline: set},
		policy(`{"activeDeadlineSeconds":"60"}`):                                            {deadline: set},
		policy(`{"activeDeadlineSeconds":60.5}`):                                            {deadline: set},
		policy(`{"activeDeadlineSeconds":[60]}`):                                            {deadline: set},
		policy(`{"activeDeadlineSeconds":{"value":60}}`):                                    {deadline: set},
		policy(`{"activeDeadlineSeconds":null}`):                                            {},
		policy(`{"ttlSecondsAfterFinished":60}`):                                            {ttl: true},
		policy(`{"ttlSecondsAfterFinished":{}}`):                                            {ttl: true},
		policy(`{"ttlSecondsAfterFinished":null}`):                                          {},
		policy(`{"activeDeadlineSeconds":"x","ttlSecondsAfterFinished":[],"more":{"a":1}}`): {deadline: set, ttl: true},
		policy(`{}`):                          {},
		policy(`null`):                        {},
		policy(`"x"`):                         {},
		policy(`5`):                           {},
		policy(`5.5`):                         {},
		policy(`true`):                        {},
		policy(`[1]`):                         {},
		`"ttlSecondsAfterFinished":0`:         {ttl: true},
		`"ttlSecondsAfterFinished":"x"`:       {ttl: true},
		`"ttlSecondsAfterFinished":1.5`:       {ttl: true},
		`"ttlSecondsAfterFinished":false`:     {ttl: true},
		`"ttlSecondsAfterFinished":[null]`:    {ttl: true},
		`"ttlSecondsAfterFinished":{"a":"b"}`: {ttl: true},
		`"ttlSecondsAfterFinished":null`:      {},
	} {
		more := spec
		if more != "" {
			more += ","
		}
		document := `{"metadata":{"name":"job"},"spec":{` + more + `"suspend":true},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`
		for how, decode := range decoders {
			job := &trainer.TrainJob{}
			if err := decode(document, job); err != nil {
				t.Errorf("%s %s: %v", spec, how, err)
				continue
			}
			if job.Name != "job" || job.Active() || !job.Terminal() {
				t.Errorf("%s %s: the rest is %+v", spec, how, job)
			}
			for _, job := range []*trainer.TrainJob{job, job.DeepCopy(), roundTrip(t, job)} {
				if diff := cmp.Diff(fmt.Sprint(text(want.deadline), want.ttl), fmt.Sprint(text(job.OwnDeadline()), job.OwnTTL())); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", spec, how, diff)
				}
			}
		}
	}
}

// text is a setting as it is to be compared: not set, set, or the number.
func text(setting *trainer.Setting) string {
	switch {
	case setting == nil:
		return "not set"
	case setting.Seconds == nil:
		return "set"
	}
	return fmt.Sprint(*setting.Seconds)
}

// roundTrip writes the view and reads it again.
func roundTrip(t *testing.T, job *trainer.TrainJob) *trainer.TrainJob {
	t.Helper()
	encoded, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	again := &trainer.TrainJob{}
	if err := json.Unmarshal(encoded, again); err != nil {
		t.Fatalf("%v in %s", err, encoded)
	}
	return again
}

func TestSettingAsJSON(t *testing.T) {
	for want, setting := range map[string]trainer.Setting{
		`{}`: {}, `0`: {Seconds: ptr.To[int64](0)}, `60`: {Seconds: ptr.To[int64](60)}, `-1`: {Seconds: ptr.To[int64](-1)},
	} {
		if got, err := json.Marshal(setting); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// A copy of a setting is its own.
func TestSettingDeepCopy(t *testing.T) {
	one := &trainer.TrainJob{}
	one.Spec.RunPolicy = &trainer.RunPolicy{ActiveDeadlineSeconds: &trainer.Setting{Seconds: ptr.To[int64](60)}}
	other := one.DeepCopy()
	*other.Spec.RunPolicy.ActiveDeadlineSeconds.Seconds = 61
	if got := text(one.OwnDeadline()); got != "60" {
		t.Errorf("a change of the copy made it %s", got)
	}
}
