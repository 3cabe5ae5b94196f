// This module pins a release of Trainer, whose CRDs the integration tests install. Nothing
// imports it: `go mod tidy` would drop the requirement.
module github.com/signalbox-dev/signalbox/test/trainers/2.2

go 1.26.0

require github.com/kubeflow/trainer/v2 v2.2.1
