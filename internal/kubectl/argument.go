package kubectl

import (
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// JobArgument returns the name of the TrainJob that is given as NAME or, as -o name writes it, as
// TYPE/NAME.
func JobArgument(argument string) (name string, err error) {
	kind, name, err := splitArgument(argument)
	if err != nil {
		return "", err
	}
	if kind != "" && kind != "trainjob" && kind != "trainjobs" {
		return "", fmt.Errorf("%q is not a TrainJob", argument)
	}
	return name, nil
}

// RuntimeArgument returns the kind and the name of the runtime that is given as NAME, of either
// kind, which is then "", or as TYPE/NAME.
func RuntimeArgument(argument string) (kind, name string, err error) {
	kind, name, err = splitArgument(argument)
	if err != nil {
		return "", "", err
	}
	switch kind {
	case "":
		return "", name, nil
	case "trainingruntime", "trainingruntimes":
		return trainer.TrainingRuntimeKind, name, nil
	case "clustertrainingruntime", "clustertrainingruntimes":
		return trainer.ClusterTrainingRuntimeKind, name, nil
	}
	return "", "", fmt.Errorf("%q is neither a TrainingRuntime nor a ClusterTrainingRuntime", argument)
}

// splitArgument cuts TYPE/NAME or TYPE.GROUP/NAME; the kind is in lower case and without a group.
func splitArgument(argument string) (kind, name string, err error) {
	kind, name, typed := strings.Cut(argument, "/")
	if !typed {
		kind, name = "", argument
	}
	kind, group, grouped := strings.Cut(strings.ToLower(kind), ".")
	if name == "" || strings.Contains(name, "/") || typed && kind == "" || grouped && group != trainer.GroupVersion.Group {
		return "", "", fmt.Errorf("%q is neither NAME nor TYPE/NAME", argument)
	}
	return kind, name, nil
}
