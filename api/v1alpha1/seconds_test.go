package v1alpha1_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

func TestParseSeconds(t *testing.T) {
	const whole1, whole0 = "must be a whole number of seconds from 1 to 4294967295", "must be a whole number of seconds from 0 to 4294967295"
	for name, tc := range map[string]struct {
		value   string
		least   int64
		want    time.Duration
		wantErr string
	}{
		"the least deadline":   {value: "1", least: v1alpha1.MinDeadlineSeconds, want: time.Second},
		"the least TTL":        {value: "0", least: v1alpha1.MinTTLSeconds},
		"the most":             {value: "4294967295", least: 1, want: 4294967295 * time.Second},
		"with zeros before it": {value: "007", least: 1, want: 7 * time.Second},
		"one too few":          {value: "0", least: 1, wantErr: "must be greater than or equal to 1"},
		"negative":             {value: "-1", least: 0, wantErr: "must be greater than or equal to 0"},
		"one too many":         {value: "4294967296", least: 1, wantErr: "must be less than or equal to 4294967295"},
		"what overflows later": {value: "9223372037", least: 1, wantErr: "must be less than or equal to 4294967295"},
		"over 64 bits":         {value: "9223372036854775808", least: 1, wantErr: whole1},
		"empty":                {value: "", least: 1, wantErr: whole1},
		"none":                 {value: v1alpha1.None, least: 0, wantErr: whole0},
		"a duration":           {value: "1h", least: 0, wantErr: whole0},
		"a fraction":           {value: "1.5", least: 1, wantErr: whole1},
		"an exponent":          {value: "1e3", least: 1, wantErr: whole1},
		"hexadecimal":          {value: "0x10", least: 1, wantErr: whole1},
		"with a space":         {value: " 1", least: 1, wantErr: whole1},
		"with underscores":     {value: "1_000", least: 1, wantErr: whole1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := v1alpha1.ParseSeconds(tc.value, tc.least)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || text != tc.wantErr {
				t.Errorf("ParseSeconds(%q, %d) = %v, %q; want %v, %q", tc.value, tc.least, got, text, tc.want, tc.wantErr)
			}
		})
	}
}

// The longest that can be said is an instant that can be computed.
func TestMaxSecondsDoesNotOverflow(t *testing.T) {
	longest := v1alpha1.MaxSeconds * time.Second
	if now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC); longest <= 0 || !now.Add(longest).After(now.AddDate(136, 0, 0)) {
		t.Errorf("%v after 2026 is %v", longest, now.Add(longest))
	}
}

// A Duration is a text in JSON, as Kubernetes writes it.
func TestDurationAsJSON(t *testing.T) {
	for text, want := range map[string]time.Duration{`"8h"`: 8 * time.Hour, `"90m"`: 90 * time.Minute, `"1h30m0s"`: 90 * time.Minute, `"999999h999999m99999999s"`: 999999*time.Hour + 999999*time.Minute + 99999999*time.Second} {
		var policy v1alpha1.ActiveDeadlinePolicy
		if err := json.Unmarshal([]byte(`{"max":`+text+`}`), &policy); err != nil || policy.Max.Duration.Duration != want {
			t.Errorf("%s is %v, %v; want %v", text, policy.Max, err, want)
			continue
		}
		encoded, err := json.Marshal(policy)
		if want := `{"max":"` + want.String() + `"}`; err != nil || string(encoded) != want {
			t.Errorf("%s is written %s, %v; want %s", text, encoded, err, want)
		}
	}
}

// What the webhook alone writes is listed in order; what users write is not in it.
func TestProtectedAnnotations(t *testing.T) {
	protected := v1alpha1.ProtectedAnnotations()
	if !slices.IsSorted(protected) || len(slices.Compact(slices.Clone(protected))) != len(protected) {
		t.Errorf("not sorted, or twice: %q", protected)
	}
	if !slices.Contains(protected, v1alpha1.AnnotationActiveDeadlineSource) {
		t.Error("anybody may say who gave a deadline")
	}
	for _, key := range []string{v1alpha1.AnnotationActiveDeadlineSeconds, v1alpha1.AnnotationTTLSecondsAfterFinished} {
		if slices.Contains(protected, key) {
			t.Errorf("%s is protected", key)
		}
	}
}
