package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	signalbox "github.com/signalbox-dev/signalbox/internal/admission"
	"github.com/signalbox-dev/signalbox/test/bench/figures"
)

func TestLoadReview(t *testing.T) {
	text, err := loadReview()
	if err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	if size := len(review.Request.Object.Raw); size < loadTrainJob*9/10 || size > loadTrainJob*11/10 {
		t.Errorf("the TrainJob has %d bytes, want about %d", size, loadTrainJob)
	}
}

func TestLoadReport(t *testing.T) {
	// Of one second each: so many answers, of which every second takes a millisecond, the others two.
	step := func(path string, connections, answers int, cpu float64) *loadStep {
		s := &loadStep{path: path, connections: connections, took: time.Second, cpu: cpu, reads: float64(answers) / 2}
		for i := range answers {
			s.latencies = append(s.latencies, time.Duration(1+i%2)*time.Millisecond)
		}
		return s
	}
	report := func(reviews int, end float64) *figures.Report {
		return loadReport([]*loadStep{
			step(signalbox.TrainJobValidatePath, 4, 1000, 0.1), step(signalbox.TrainJobValidatePath, 64, 1000, 0.2),
			step(signalbox.TrainJobMutatePath, 4, 1000, 1), step(signalbox.TrainJobMutatePath, 64, reviews, 0.5),
		}, &loadMemory{seconds: []float64{1, 2, 3, 4}, bytes: []float64{1e6, 10e6, 15e6, end}, warm: 1, end: 3})
	}
	got := report(1500, 12e6)
	want := [][]string{
		{"/mutate-trainjob", "4", "1000", "1000", "0.50", "1.0 ms", "2.0 ms", "2.0 ms"},
		{"/mutate-trainjob", "64", "1500", "3000", "0.50", "1.0 ms", "2.0 ms", "2.0 ms"},
		{"/validate-trainjob", "4", "1000", "10000", "0.50", "1.0 ms", "2.0 ms", "2.0 ms"},
		{"/validate-trainjob", "64", "1000", "5000", "0.50", "1.0 ms", "2.0 ms", "2.0 ms"},
	}
	if !slices.EqualFunc(got.Tables[0].Rows, want, slices.Equal) {
		t.Errorf("rows %v, want %v", got.Tables[0].Rows, want)
	}
	if memory := got.Tables[1].Rows[0]; !slices.Equal(memory, []string{"10 MB", "12 MB", "15 MB"}) {
		t.Errorf("memory %v", memory)
	}
	if got.Targets[0].Got != "3000" || !got.Targets[0].Met || !got.Targets[1].Met {
		t.Errorf("targets %+v, want both met", got.Targets)
	}
	if missed := report(1499, 12.1e6).Targets; missed[0].Met || missed[1].Met {
		t.Errorf("targets %+v, want none met", missed)
	}
}
