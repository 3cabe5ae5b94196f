package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

func TestFormat(t *testing.T) {
	for name, tc := range map[string]struct {
		line   line
		after  time.Duration
		colour bool
		want   string
	}{
		"a change while a deadline counts": {
			line:  line{kind: "TrainJob", name: "demo", text: "resumed", rest: "10.0s left", style: bold},
			after: 23440 * time.Millisecond,
			want:  "  23.4s  TrainJob   demo                   resumed  (10.0s left)",
		},
		"a change without a deadline": {
			line: line{kind: "Pod", name: "demo-node-0-0-abcde", text: "gone"},
			want: "   0.0s  Pod        demo-node-0-0-abcde    gone",
		},
		"what the demo says has no name": {
			line:  line{kind: ">", text: "set suspend: true"},
			after: 2 * time.Minute,
			want:  " 120.0s  >          set suspend: true",
		},
		"colours": {
			line:   line{kind: "TrainJob", name: "demo", text: "resumed", rest: "10.0s left", style: bold},
			colour: true,
			want:   "   0.0s  \x1b[1mTrainJob   demo                   resumed\x1b[0m  \x1b[36m(10.0s left)\x1b[0m",
		},
		"a plain line among colours": {
			line: line{kind: "Pod", name: "p", text: "gone"}, colour: true,
			want: "   0.0s  Pod        p                      gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.line.format(tc.after, tc.colour); got != tc.want {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *trainer.TrainJob
		want string
	}{
		"waiting": {
			job: trainJob().Deadline(10).Stamp(instant.Add(-2500 * time.Millisecond)).Obj(), want: "7.5s left",
		},
		"reached": {job: trainJob().Deadline(10).Stamp(instant.Add(-10 * time.Second)).Obj(), want: "deadline reached"},
		"suspended": {
			job: trainJob().Deadline(10).Suspended().Obj(),
		},
		"finished": {
			job: trainJob().Deadline(10).Stamp(instant).Condition("Failed", metav1.ConditionTrue, "DeadlineExceeded", instant).Obj(),
		},
		"no TrainJob yet": {job: world{}.trainJob()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := remaining(tc.job, instant); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWantsColour(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	// Not a terminal, but a character device as one is, and there on every machine.
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	for name, tc := range map[string]struct {
		file *os.File
		env  map[string]string
		want bool
	}{
		"a terminal":                     {file: device, want: true},
		"a file":                         {file: file},
		"a terminal with NO_COLOR":       {file: device, env: map[string]string{"NO_COLOR": "1"}},
		"a terminal with NO_COLOR empty": {file: device, env: map[string]string{"NO_COLOR": ""}, want: true},
		"a dumb terminal":                {file: device, env: map[string]string{"TERM": "dumb"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wantsColour(tc.file, func(key string) string { return tc.env[key] }); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
