// Package v1alpha1 is the API of Signalbox: its kinds, and the annotations that it reads and
// writes on the objects of Kubeflow Trainer.
//
// +kubebuilder:object:generate=true
// +groupName=lifecycle.trainer.kubeflow.org
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of Signalbox's own kinds and the prefix of all its annotations.
const Group = "lifecycle.trainer.kubeflow.org"

// FieldManager is the field manager of all that Signalbox's reconcilers write, and the source
// of its events.
const FieldManager = "signalbox"

// GroupVersion is the version of the kinds.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TrainingRuntimeSnapshot{}, &TrainingRuntimeSnapshotList{}, &LifecyclePolicy{}, &LifecyclePolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
