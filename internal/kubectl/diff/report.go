package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// jobReport is a comparison as -o json and yaml write it.
type jobReport struct {
	Runtime  runtimeReport `json:"runtime"`
	TrainJob useReport     `json:"trainJob"`
	// Diff is the unified diff; left out where there is none.
	Diff string `json:"diff,omitempty"`
}

// runtimeReport is a runtime as it is now.
type runtimeReport struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Revision of its content; left out where it is gone or could not be read.
	Revision string `json:"revision,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
}

// runtimeUses is a runtime and the unfinished TrainJobs that refer to it.
type runtimeUses struct {
	Runtime   runtimeReport `json:"runtime"`
	TrainJobs []useReport   `json:"trainJobs"`
}

// useReport is what one TrainJob runs on.
type useReport struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Active    bool   `json:"active"`
	// Revision of what it runs on; left out where that is not known, and Why says why.
	Revision string       `json:"revision,omitempty"`
	From     kubectl.From `json:"from"`
	Next     kubectl.From `json:"next,omitempty"`
	// Same tells whether that is the revision of the runtime now; left out where it is not known.
	Same *bool  `json:"same,omitempty"`
	Why  string `json:"why,omitempty"`
}

// useOf reports what a TrainJob runs on, next to its runtime as that is now. What runs on a runtime
// that is gone runs on another revision than that has.
func useOf(job *trainer.TrainJob, built kubectl.Built, live kubectl.Live) useReport {
	use := useReport{
		Namespace: job.Namespace, Name: job.Name, Active: job.Active(),
		Revision: built.Revision, From: built.From, Next: built.Next, Why: built.Why,
	}
	changed, known := built.Changed(live)
	if live.Gone && built.Revision != "" {
		changed, known = true, true
	}
	if known {
		same := !changed
		use.Same = &same
	}
	return use
}

// sortUses sorts what people look for to the top: what runs on another revision, then what is not
// known, then the rest, each by namespace and name.
func sortUses(uses []useReport) {
	slices.SortFunc(uses, func(a, b useReport) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

func (u useReport) rank() int {
	switch {
	case u.Same == nil:
		return 1
	case *u.Same:
		return 2
	}
	return 0
}

// standing says in a word how a TrainJob stands to its runtime.
func (u useReport) standing() string {
	return []string{"differs", "unknown", "same"}[u.rank()]
}

// exitOf returns the exit code for what is known of TrainJobs: trouble where it is not known of one.
func exitOf(uses []useReport) int {
	code := exitSame
	for _, use := range uses {
		switch use.rank() {
		case 1:
			return exitTrouble
		case 0:
			code = exitDifferent
		}
	}
	return code
}
