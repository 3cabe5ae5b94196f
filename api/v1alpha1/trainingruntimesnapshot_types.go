package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TrainingRuntimeSnapshotKind is the kind of a TrainingRuntimeSnapshot.
const TrainingRuntimeSnapshotKind = "TrainingRuntimeSnapshot"

// TrainingRuntimeSnapshot is the runtime that a TrainJob lives on, as it was when it was
// sealed. It has the name of its TrainJob, is owned by it and goes with it. It is written
// once: what an admin does to the runtime later is not in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=trainingruntimesnapshots,shortName=trs
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.metadata.annotations.trainer\.kubeflow\.org/snapshot-source`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name="Sealed",type=date,JSONPath=`.spec.sealedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrainingRuntimeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the sealed runtime. It is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
	Spec TrainingRuntimeSnapshotSpec `json:"spec"`
}

// TrainingRuntimeSnapshotSpec is the sealed runtime and where it came from.
type TrainingRuntimeSnapshotSpec struct {
	// source is the runtime that the snapshot was taken of.
	// +required
	Source RuntimeSource `json:"source"`

	// revision identifies the content of runtimeSpec: the first 16 hexadecimal digits of the
	// SHA-256 of its canonical JSON. Equal content has an equal revision.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	Revision string `json:"revision"`

	// sealedAt is when the content was taken, to the second.
	// +required
	SealedAt metav1.Time `json:"sealedAt"`

	// runtimeSpec is the spec of the runtime, with all its fields.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	RuntimeSpec runtime.RawExtension `json:"runtimeSpec"`
}

// RuntimeSource names a runtime and which state of it was taken.
type RuntimeSource struct {
	// apiVersion of the runtime, GROUP/VERSION.
	// +required
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// kind of the runtime: ClusterTrainingRuntime or TrainingRuntime.
	// +required
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// name of the runtime; one that is namespaced is in the namespace of the snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// uid of the runtime; empty where the snapshot that it was taken from does not tell.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation of the runtime; 0 where the snapshot that it was taken from does not tell.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// TrainingRuntimeSnapshotList is a list of snapshots.
//
// +kubebuilder:object:root=true
type TrainingRuntimeSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrainingRuntimeSnapshot `json:"items"`
}
