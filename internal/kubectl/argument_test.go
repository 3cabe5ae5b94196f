package kubectl

import "testing"

func TestJobArgument(t *testing.T) {
	for argument, want := range map[string]string{
		"train":                               "train",
		"trainjob/train":                      "train",
		"TrainJobs/train":                     "train",
		"trainjob.trainer.kubeflow.org/train": "train",
		"":                                    "",
		"/train":                              "",
		"trainjob/":                           "",
		"trainjob/team-a/train":               "",
		"trainingruntime/torch":               "",
		"trainjob.example.com/train":          "",
	} {
		name, err := JobArgument(argument)
		if name != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", argument, name, err, want)
		}
	}
}

func TestRuntimeArgument(t *testing.T) {
	for argument, want := range map[string][2]string{
		"torch":                        {"", "torch"},
		"TrainingRuntime/torch":        {"TrainingRuntime", "torch"},
		"trainingruntimes/torch":       {"TrainingRuntime", "torch"},
		"clustertrainingruntime/torch": {"ClusterTrainingRuntime", "torch"},
		"clustertrainingruntime.trainer.kubeflow.org/torch": {"ClusterTrainingRuntime", "torch"},
		"trainjob/torch":          {},
		"TrainingRuntime/":        {},
		"TrainingRuntime/a/b":     {},
		"TrainingRuntime.x/torch": {},
	} {
		kind, name, err := RuntimeArgument(argument)
		if [2]string{kind, name} != want || (err == nil) != (want[1] != "") {
			t.Errorf("%q: %q, %q, %v; want %q", argument, kind, name, err, want)
		}
	}
}
