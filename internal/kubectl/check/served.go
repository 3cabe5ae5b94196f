package check

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// leastKubernetes is the oldest Kubernetes that Signalbox supports.
var leastKubernetes = version.MustParseGeneric("1.33.0")

// definition is a CRD that is looked for.
type definition struct {
	// Name is that of the CRD, PLURAL.GROUP.
	Name string
	Kind string
	// Versions are those of which one must be served.
	Versions []string
}

// group is the API group of the CRD.
func (d definition) group() string {
	_, group, _ := strings.Cut(d.Name, ".")
	return group
}

// key is where the versions that are served of it stand in Facts.Served.
func (d definition) key() string { return d.group() + "/" + d.Kind }

// The CRDs that Signalbox works with, by whose they are.
var (
	ofTrainer = []definition{
		{trainer.CRDName, trainer.TrainJobKind, []string{trainer.GroupVersion.Version}},
		{"trainingruntimes." + trainer.GroupVersion.Group, trainer.TrainingRuntimeKind, []string{trainer.GroupVersion.Version}},
		{"clustertrainingruntimes." + trainer.GroupVersion.Group, trainer.ClusterTrainingRuntimeKind, []string{trainer.GroupVersion.Version}},
	}
	ofJobSet = []definition{{"jobsets.jobset.x-k8s.io", "JobSet", []string{"v1alpha2"}}}
	ofOwn    = []definition{
		{"lifecyclepolicies." + v1alpha1.Group, v1alpha1.LifecyclePolicyKind, []string{v1alpha1.GroupVersion.Version}},
		{"trainingruntimesnapshots." + v1alpha1.Group, "TrainingRuntimeSnapshot", []string{v1alpha1.GroupVersion.Version}},
	}
	// ofKueue need not be there.
	ofKueue = definition{"workloads.kueue.x-k8s.io", "Workload", []string{"v1beta1", "v1beta2"}}
)

// definitions are all CRDs that are looked for.
func definitions() []definition { return append(slices.Concat(ofTrainer, ofJobSet, ofOwn), ofKueue) }

// kubernetes judges the API server's version.
func kubernetes(facts *Facts) []Item {
	item := Item{Check: "Kubernetes", Level: OK, Finding: facts.Version}
	found, err := version.ParseGeneric(facts.Version)
	switch {
	case err != nil:
		item.Level, item.Finding = Unknown, "its version is no version: "+facts.Version
	case found.LessThan(leastKubernetes):
		item.Level, item.Todo = Fault, fmt.Sprintf("upgrade it to %d.%d or later", leastKubernetes.Major(), leastKubernetes.Minor())
	}
	return []Item{item}
}

// state is how a CRD is.
type state int

const (
	// installed: a version that is needed is served.
	installed state = iota
	// absent: it is not there.
	absent
	// other: no version that is needed is served.
	other
	// dark: nothing is known.
	dark
)

// look finds how a CRD is, with the versions that are served of it.
func look(facts *Facts, d definition) (state, []string) {
	var versions []string
	crd := facts.CRDs[d.Name]
	switch {
	case facts.Served.There():
		versions = slices.Sorted(slices.Values(facts.Served.Value[d.key()]))
	case crd.There():
		versions = servedBy(crd.Value)
	case crd.Missing:
	default:
		return dark, nil
	}
	if len(versions) == 0 {
		if crd.There() {
			return other, nil
		}
		return absent, nil
	}
	if !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(d.Versions, v) }) {
		return other, versions
	}
	return installed, versions
}

// servedBy returns the versions that the CRD says are served.
func servedBy(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var versions []string
	if crd == nil {
		return nil
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// lacking returns a line for each of the CRDs that is not as it must be, and whether all could be
// looked at.
func lacking(facts *Facts, check string, of []definition, todo string) []Item {
	var items []Item
	var gone []string
	for _, d := range of {
		switch state, versions := look(facts, d); state {
		case absent:
			gone = append(gone, d.Name)
		case other:
			items = append(items, Item{check, Fault, fmt.Sprintf("%s serves %s, and needed is %s", d.Name, orNone(versions), strings.Join(d.Versions, " or ")), todo})
		case dark:
			return []Item{{check, Unknown, "not known: " + facts.Served.Unread, ""}}
		}
	}
	switch {
	case len(gone) == len(of):
		items = append(items, Item{check, Fault, "not installed", todo})
	case len(gone) > 0:
		items = append(items, Item{check, Fault, "its " + strings.Join(gone, " and ") + " is missing", todo})
	}
	return items
}

func orNone(versions []string) string {
	if len(versions) == 0 {
		return "no version"
	}
	return strings.Join(versions, ", ")
}

const (
	getTrainer = "install Kubeflow Trainer 2.0 or later, 2.3 for all that Signalbox does: https://www.kubeflow.org/docs/components/trainer/"
	getJobSet  = "install JobSet, which comes with Trainer's manifests and chart"
)

// jobSet judges what is there of JobSet.
func jobSet(facts *Facts) []Item {
	if items := lacking(facts, "JobSet", ofJobSet, getJobSet); len(items) > 0 {
		return items
	}
	_, versions := look(facts, ofJobSet[0])
	return []Item{{Check: "JobSet", Level: OK, Finding: "serves " + strings.Join(versions, ", ")}}
}

// ownCRDs judges the CRDs of Signalbox.
func ownCRDs(facts *Facts) []Item {
	todo := upgrade(facts, "crds.install=true")
	if items := lacking(facts, "CRDs", ofOwn, todo); len(items) > 0 {
		return items
	}
	for _, d := range ofOwn {
		crd := facts.CRDs[d.Name]
		if !crd.There() {
			continue
		}
		for _, condition := range crd.Value.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status != apiextensionsv1.ConditionTrue {
				return []Item{{"CRDs", Fault, fmt.Sprintf("%s is not established: %s", d.Name, condition.Message), "look at it: kubectl describe crd " + d.Name}}
			}
		}
	}
	_, versions := look(facts, ofOwn[0])
	return []Item{{Check: "CRDs", Level: OK, Finding: "LifecyclePolicies and TrainingRuntimeSnapshots serve " + strings.Join(versions, ", ")}}
}
