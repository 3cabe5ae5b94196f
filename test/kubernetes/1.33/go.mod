// This module pins a release of Kubernetes, against whose OpenAPI the tests of the chart hold
// what it renders. Nothing imports it: `go mod tidy` would drop the requirement.
module github.com/signalbox-dev/signalbox/test/kubernetes/1.33

go 1.26.0

require k8s.io/kubernetes v1.33.13
