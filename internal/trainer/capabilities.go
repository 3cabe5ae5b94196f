package trainer

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CRDName is the name of the CustomResourceDefinition of TrainJobs.
const CRDName = "trainjobs.trainer.kubeflow.org"

// Capabilities are what the installed Trainer knows, going by the fields of its CRD: never
// by a setting, which could be wrong.
//
// +kubebuilder:object:generate=false
type Capabilities struct {
	// ActiveDeadline: TrainJobs have spec.activeDeadlineSeconds (Trainer 2.2 and later).
	ActiveDeadline bool
	// RuntimeSnapshot: Trainer keeps the runtime of a TrainJob in a ConfigMap (Trainer 2.3
	// and later). The CRD does not say so; it is told by the field
	// terminationGracePeriodSeconds of the pod patches in spec.runtimePatches, which came
	// with the same release.
	RuntimeSnapshot bool
	// TTL: TrainJobs have spec.ttlSecondsAfterFinished. No released Trainer knows it.
	TTL bool
	// RunPolicy: TrainJobs have spec.runPolicy. No released Trainer knows it.
	RunPolicy bool
}

// Detect finds out what the Trainer of this CRD knows.
func Detect(crd *apiextensionsv1.CustomResourceDefinition) Capabilities {
	var found Capabilities
	for _, version := range crd.Spec.Versions {
		if version.Name != GroupVersion.Version || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		_, found.ActiveDeadline = spec.Properties["activeDeadlineSeconds"]
		_, found.TTL = spec.Properties["ttlSecondsAfterFinished"]
		_, found.RunPolicy = spec.Properties["runPolicy"]
		found.RuntimeSnapshot = mentions(spec.Properties["runtimePatches"], "terminationGracePeriodSeconds")
	}
	return found
}

// mentions tells whether the schema has a property of that name at any depth.
func mentions(schema apiextensionsv1.JSONSchemaProps, name string) bool {
	if _, found := schema.Properties[name]; found {
		return true
	}
	for _, property := range schema.Properties {
		if mentions(property, name) {
			return true
		}
	}
	return schema.Items != nil && schema.Items.Schema != nil && mentions(*schema.Items.Schema, name)
}
