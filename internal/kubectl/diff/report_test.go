package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
	"github.com/signalbox-dev/signalbox/test/builder"
)

func TestUses(t *testing.T) {
	live := kubectl.Live{Revision: "live"}
	same := kubectl.Built{From: kubectl.FromSeal, Revision: "live"}
	other := kubectl.Built{From: kubectl.FromSeal, Revision: "sealed"}
	unknown := kubectl.Built{From: kubectl.FromUnknown, Why: "nobody knows"}
	type use struct {
		name  string
		built kubectl.Built
	}
	for name, tc := range map[string]struct {
		uses []use
		live kubectl.Live
		want []string // name and standing, in order
		exit int
	}{
		"none":                       {live: live, exit: exitSame},
		"all on the live revision":   {uses: []use{{"b", same}, {"a", same}}, live: live, want: []string{"a same", "b same"}, exit: exitSame},
		"one on another":             {uses: []use{{"a", same}, {"b", other}}, live: live, want: []string{"b differs", "a same"}, exit: exitDifferent},
		"one not known":              {uses: []use{{"a", same}, {"b", unknown}, {"c", other}}, live: live, want: []string{"c differs", "b unknown", "a same"}, exit: exitTrouble},
		"a runtime that is gone":     {uses: []use{{"a", other}}, live: kubectl.Live{Gone: true}, want: []string{"a differs"}, exit: exitDifferent},
		"a runtime that is not read": {uses: []use{{"a", other}}, want: []string{"a unknown"}, exit: exitTrouble},
		"one that followed what is gone": {
			uses: []use{{"a", kubectl.Built{From: kubectl.FromLive, Why: "its runtime is gone"}}}, live: kubectl.Live{Gone: true}, want: []string{"a unknown"}, exit: exitTrouble,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var uses []useReport
			for _, use := range tc.uses {
				uses = append(uses, useOf(builder.TrainJob("team-a", use.name).Obj(), use.built, tc.live))
			}
			sortUses(uses)
			var got []string
			for _, use := range uses {
				got = append(got, use.Name+" "+use.standing())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if exit := exitOf(uses); exit != tc.exit {
				t.Errorf("exit code %d, want %d", exit, tc.exit)
			}
		})
	}
}
