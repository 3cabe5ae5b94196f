package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSortOut(t *testing.T) {
	for name, tc := range map[string]struct {
		all        []key
		want       []key
		wantOthers string
	}{
		"after a TrainJob": {
			all: []key{
				{kindTrainJob, jobName}, {kindEvent, "a"}, {"ServiceAccount", "default"}, {"ConfigMap", "kube-root-ca.crt"},
				{"TrainingRuntimeSnapshot", jobName}, {"ConfigMap", jobName + "-runtime-snapshot"}, {kindEvent, "b"},
			},
			want:       wantLeft,
			wantOthers: "besides: ServiceAccount default, ConfigMap kube-root-ca.crt, 2 events",
		},
		"another ServiceAccount counts": {
			all:        []key{{"ServiceAccount", "other"}},
			want:       []key{{"ServiceAccount", "other"}},
			wantOthers: "besides: 0 events",
		},
		"an empty namespace": {wantOthers: "besides: 0 events"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sortOut(tc.all)
			if diff := cmp.Diff(tc.want, got.objects, cmp.AllowUnexported(key{})); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if others := got.others(); others != tc.wantOthers {
				t.Errorf("others: got %q, want %q", others, tc.wantOthers)
			}
		})
	}
}
