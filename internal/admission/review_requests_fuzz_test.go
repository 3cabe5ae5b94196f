package admission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
)

const sealedAnnotations = `"annotations":{"lifecycle.trainer.kubeflow.org/resumed-at":"2026-03-01T11:59:59Z",
	"lifecycle.trainer.kubeflow.org/runtime-source":"ClusterTrainingRuntime/torch"}`

// requests are one or more of each kind, as they come.
func requests(t testing.TB) map[string][]asked {
	t.Helper()
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	trainJob := func(spec, status string) string {
		return `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":"job","namespace":"ns","uid":"uid-of-job","creationTimestamp":"2026-03-01T11:00:00Z",
			"deletionTimestamp":null,"labels":{"a":"b"},` + sealedAnnotations + `},
			"spec":{"runtimeRef":{"apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime","name":"torch"},"suspend":` + spec + `,"managedBy":"trainer.kubeflow.org/trainjob-controller",
			"initializer":{"dataset":{},"model":{}},"activeDeadlineSeconds":60,"trainer":{"numNodes":1},"runtimePatches":[{"manager":"kueue.x-k8s.io/manager","time":"2026-03-01T11:00:00Z",
			"trainingRuntimeSpec":{"template":{"metadata":{"annotations":{"a":"b"}},"spec":{"replicatedJobs":[{"name":"node"}]}}}},{"manager":"kueue.x-k8s.io/manager"}]},"status":` + status + `}`
	}
	condition := func(kind, reason string) string {
		return `{"conditions":[{"type":"Suspended","status":"False","reason":"Resumed","message":"","lastTransitionTime":"2026-03-01T11:30:00Z"},
			{"type":"` + kind + `","status":"True","reason":"` + reason + `","message":"","lastTransitionTime":"2026-03-01T12:00:00Z"}]}`
	}
	elsewhere := strings.NewReplacer(`trainer.kubeflow.org/trainjob-controller`, `kueue.x-k8s.io/multikueue`, `"lifecycle.trainer.kubeflow.org/runtime-source"`, `"lifecycle.trainer.kubeflow.org/active-deadline-source"`).Replace(trainJob("false", "{}"))
	jobSet := strings.Replace(owned, `"name":"job",`, `"name":"job","annotations":{"lifecycle.trainer.kubeflow.org/runtime-revision":"`+take(t, torch()).Revision+`"},`, 1)
	jobSet = strings.TrimSuffix(jobSet, "}") + `,"spec":{"suspend":false,"replicatedJobs":[{"name":"node"}]}}`
	runtime := encode(mine().Set(map[string]any{"labels": map[string]any{}, "annotations": map[string]any{"a": "b", v1alpha1.AnnotationRuntimeSource: "x"}}, "spec", "template", "metadata").Obj())
	renamed := encode(renamed(mine().Annotation(v1alpha1.AnnotationAllowDisruption, "true")).Obj())
	return map[string][]asked{
		TrainJobMutatePath: {
			{operation: "CREATE", object: trainJob("false", "{}")},
			{operation: "CREATE", object: trainJob("true", "{}"), dryRun: true},
			{operation: "CREATE", object: elsewhere},
			{operation: "UPDATE", object: trainJob("false", "{}"), oldObject: trainJob("true", condition("Suspended", "Suspended"))},
			{operation: "UPDATE", object: trainJob("true", "{}"), oldObject: trainJob("null", "{}")},
		},
		TrainJobValidatePath: {
			{operation: "CREATE", object: trainJob("false", "{}")},
			{operation: "UPDATE", object: trainJob("false", "{}"), oldObject: trainJob("true", "{}")},
		},
		TrainJobStatusPath: {
			{operation: "UPDATE", subResource: "status", object: trainJob("false", "{}"), oldObject: trainJob("false", condition("Failed", "DeadlineExceeded"))},
			{operation: "UPDATE", subResource: "status", user: trainerUser, object: trainJob("false", condition("Failed", "DeadlineExceeded")), oldObject: trainJob("false", "{}")},
			{operation: "UPDATE", subResource: "status", object: trainJob("false", "null"), oldObject: trainJob("false", condition("Complete", "Done"))},
		},
		JobSetValidatePath: {
			{operation: "CREATE", object: jobSet},
			{operation: "UPDATE", object: jobSet, oldObject: strings.Replace(jobSet, `"suspend":false`, `"suspend":true`, 1)},
			{operation: "DELETE", oldObject: jobSet, user: trainerUser},
		},
		RuntimeMutatePath: {
			{operation: "CREATE", object: runtime},
			{operation: "UPDATE", object: runtime, oldObject: renamed},
			{operation: "UPDATE", object: renamed, oldObject: runtime},
		},
		RuntimeValidatePath: {
			{operation: "CREATE", object: runtime},
			{operation: "UPDATE", object: renamed, oldObject: runtime},
			{operation: "DELETE", oldObject: runtime},
		},
		WorkloadMutatePath: {
			{operation: "CREATE", dryRun: true, user: kueueUser, object: string(viewRequest(t, "v1beta2").Object.Raw)},
		},
	}
}

// odd are values that stand where others should.
var odd = []string{`null`, `5`, `1e400`, `"x/../y"`, `[null]`, `{}`, `{"a":1,"a":[]}`}

// deep is nested deeper than decoders go.
var deep = strings.Repeat("[", 11_000) + strings.Repeat("]", 11_000)

// replaced returns the document once for each place in it and each odd value, with that there.
func replaced(t *testing.T, document string) []string {
	t.Helper()
	const hole = `"a place that no document has"`
	var root any
	if err := json.Unmarshal([]byte(document), &root); err != nil {
		t.Fatal(err)
	}
	var places []string
	note := func() {
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, string(text))
	}
	var walk func(value any, put func(any))
	walk = func(value any, put func(any)) {
		put(strings.Trim(hole, `"`))
		note()
		put(value)
		switch value := value.(type) {
		case map[string]any:
			for key, child := range value {
				walk(child, func(with any) { value[key] = with })
			}
		case []any:
			for i, child := range value {
				walk(child, func(with any) { value[i] = with })
			}
		}
	}
	walk(root, func(with any) { root = with })
	var documents []string
	for _, place := range places {
		for _, value := range odd {
			documents = append(documents, strings.Replace(place, hole, value, 1))
		}
	}
	documents = append(documents, strings.Replace(places[len(places)-1], hole, deep, 1))
	return documents
}
