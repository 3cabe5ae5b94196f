package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// testDetection checks that the reconciler sees which Trainer there is: while it runs, where
// it says so once if anything is new, and at its start. before is what the Trainer knew that
// was there before, from the length that the log had then.
func testDetection(s *scene, before trainer.Capabilities, from int) {
	var want []trainer.Capabilities
	if s.release.knows != before {
		want = append(want, s.release.knows)
	}
	s.detects(s.release.knows)
	s.must(shared.Reconciler.Stop(s.ctx))
	s.must(shared.Reconciler.Start(s.ctx))
	s.detects(s.release.knows)
	s.said(from, append(want, s.release.knows)...)
}

// detects waits until the metric of both parts says what Trainer knows.
func (s *scene) detects(want trainer.Capabilities) {
	s.Helper()
	series := map[string]float64{}
	for name, has := range map[string]bool{
		"active_deadline_seconds": want.ActiveDeadline, "runtime_snapshot": want.RuntimeSnapshot,
		"ttl_seconds_after_finished": want.TTL, "run_policy": want.RunPolicy,
	} {
		series[name] = 0
		if has {
			series[name] = 1
		}
	}
	for _, part := range []*cluster.Process{shared.Reconciler, shared.Webhook} {
		s.eventually("the metric of what Trainer knows, of "+part.Name, func() (bool, string) {
			got, err := capabilities(part)
			if err != nil {
				return false, err.Error()
			}
			return fmt.Sprint(got) == fmt.Sprint(series), fmt.Sprintf("%v, want %v", got, series)
		})
	}
}

// capabilities reads the metric of a part: what each series says.
func capabilities(part *cluster.Process) (map[string]float64, error) {
	response, err := http.Get(part.MetricsURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, metric := range families["signalbox_trainer_capability"].GetMetric() {
		found[metric.Label[0].GetValue()] = metric.GetGauge().GetValue()
	}
	return found, nil
}

// logged is the length of the reconciler's log.
func (s *scene) logged() int {
	s.Helper()
	log, err := os.ReadFile(shared.Reconciler.LogPath)
	s.must(err)
	return len(log)
}

// said waits until the reconciler's log says, from the given place on, just this about
// Trainer, in this order.
func (s *scene) said(from int, want ...trainer.Capabilities) {
	s.Helper()
	s.eventually("lines about Trainer in the log", func() (bool, string) {
		log, err := os.ReadFile(shared.Reconciler.LogPath)
		s.must(err)
		var got []trainer.Capabilities
		for line := range bytes.Lines(log[from:]) {
			var entry struct {
				Message         string `json:"msg"`
				ActiveDeadline  *bool  `json:"activeDeadlineSeconds"`
				RuntimeSnapshot *bool  `json:"runtimeSnapshot"`
				TTL             *bool  `json:"ttlSecondsAfterFinished"`
				RunPolicy       *bool  `json:"runPolicy"`
			}
			if json.Unmarshal(line, &entry) != nil || entry.Message != "what the installed Trainer knows" {
				continue
			}
			if entry.ActiveDeadline == nil || entry.RuntimeSnapshot == nil || entry.TTL == nil || entry.RunPolicy == nil {
				s.Fatalf("a line leaves something open: %s", line)
			}
			got = append(got, trainer.Capabilities{
				ActiveDeadline: *entry.ActiveDeadline, RuntimeSnapshot: *entry.RuntimeSnapshot, TTL: *entry.TTL, RunPolicy: *entry.RunPolicy,
			})
		}
		return slices.Equal(got, want), fmt.Sprintf("%+v, want %+v", got, want)
	})
}
