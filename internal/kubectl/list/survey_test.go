package list

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/signalbox-dev/signalbox/test/builder"
)

// What cannot be found out any more stays as it was known.
func TestTakeKeepsWhatWasKnown(t *testing.T) {
	s := newScene(t, "")
	p := s.picture
	s.take(surveyed{keeps: ptr.To(false), signalbox: ptr.To(false)})
	s.take(surveyed{})
	if p.signalbox || p.keeps == nil || *p.keeps || !p.kueue {
		t.Errorf("after a survey that failed: Signalbox %t, keeps %v, Kueue %t", p.signalbox, p.keeps, p.kueue)
	}
	s.take(surveyed{keeps: ptr.To(true), signalbox: ptr.To(true)})
	if !p.signalbox || !*p.keeps {
		t.Errorf("after the next: Signalbox %t, keeps %t", p.signalbox, *p.keeps)
	}
	if !newPicture().signalbox {
		t.Error("Signalbox, not known from the start, is not taken to be there")
	}
}

// What was filed of a runtime is not looked for again and again.
func TestEvidenceIsSoughtNowAndThen(t *testing.T) {
	s := newScene(t, "")
	p := s.picture
	fill(t, &p.jobs,
		builder.TrainJob("ns", "runs").Created(created).Obj(),
		builder.TrainJob("ns", "ended").Created(created).Condition("Complete", "True", "x", created).Obj())
	p.jobs.end()
	seeks := func(at time.Time) (names []string) {
		for _, job := range p.evidence(at).jobs {
			names = append(names, job.Name)
		}
		slices.Sort(names)
		return names
	}
	check := func(what string, at time.Time, want ...string) {
		t.Helper()
		if got := seeks(at); !slices.Equal(got, want) {
			t.Errorf("%s it looks for %q, want %q", what, got, want)
		}
	}
	check("at first", created, "ended", "runs")

	s.accept(proof{of: p.evidence(created), at: created, failed: true})
	check("after a failure", created, "ended", "runs")
	if !p.keptUnread {
		t.Error("what could not be read counts as read")
	}

	s.accept(proof{of: p.evidence(created), at: created, denied: map[string]bool{"ConfigMaps/ns": true}})
	check("after a minute", created.Add(again))
	check("after some minutes", created.Add(enough), "runs")
	later := p.evidence(created.Add(enough))
	if !later.denied["ConfigMaps/ns"] {
		t.Error("what is not allowed is tried again")
	}
	s.accept(proof{of: later, at: later.at})
	if !p.keptUnread {
		t.Error("what is not allowed counts as read")
	}

	s.accept(proof{of: later, at: later.at, kept: map[types.UID]string{"uid-of-runs": "0123"}})
	check("once it is found", created.Add(time.Hour))
}

// What is looked up is found once for all that happens between two pictures.
func TestIndexOncePerShow(t *testing.T) {
	s := newScene(t, "")
	p := s.picture
	p.rows(s.at)
	was := p.jobSetsOf
	was[types.NamespacedName{Name: "mark"}] = nil
	marked := func() bool { _, found := p.jobSetsOf[types.NamespacedName{Name: "mark"}]; return found }
	p.stale()
	for _, job := range p.jobs.items {
		p.row(job, s.at)
	}
	if !marked() {
		t.Error("one row had all found anew")
	}
	p.rows(s.at)
	if marked() {
		t.Error("the rows are of what was there before")
	}
}
