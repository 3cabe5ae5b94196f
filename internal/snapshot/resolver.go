package snapshot

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// packedRuntimes is how many runtimes stay packed. Most are a few KiB, none is more than
// MaxCompressed.
const packedRuntimes = 256

// Resolver finds what is to be sealed into a TrainJob.
type Resolver struct {
	live client.Reader
	// packed holds by UID, for the state that was seen last, what it packs to.
	packed *lru.Cache
	// looks are those at runtimes that are under way.
	looks batches[runtimeKey, packedRuntime]
}

// runtimeKey names a runtime; the namespace of one that belongs to the cluster is empty.
type runtimeKey struct {
	schema.GroupVersionKind
	types.NamespacedName
}

type packedRuntime struct {
	resourceVersion string
	written         time.Time
	packed          *Packed
}

// NewResolver returns a resolver that reads from the API server: a cache may be behind, and
// for minutes after a change of the runtimes' CRD it holds them without the new fields, at the
// same resource version.
func NewResolver(live client.Reader) *Resolver {
	return &Resolver{live: live, packed: lru.New(packedRuntimes)}
}

// Runtime returns the runtime that a TrainJob in this namespace refers to, as it is stored
// now; a NotFound error when there is none. It costs one read of metadata, that it shares with
// others who ask at the same time. The content is read and packed once for each state of the
// runtime.
func (r *Resolver) Runtime(ctx context.Context, namespace string, ref trainer.RuntimeRef) (*Packed, error) {
	known, err := r.runtime(ctx, namespace, ref)
	return known.packed, err
}

// Revision returns the revision of the same runtime, and when that state of it was written, to
// the second; at the same cost.
func (r *Resolver) Revision(ctx context.Context, namespace string, ref trainer.RuntimeRef) (revision string, written time.Time, err error) {
	known, err := r.runtime(ctx, namespace, ref)
	if err != nil {
		return "", time.Time{}, err
	}
	return known.packed.revision, known.written, nil
}

func (r *Resolver) runtime(ctx context.Context, namespace string, ref trainer.RuntimeRef) (packedRuntime, error) {
	gvk := ref.GroupVersionKind()
	key := ref.Key(namespace)
	// No runtime has such a name. The client for metadata makes it part of the path that it asks for,
	// where it could lead to a runtime of another namespace.
	if len(content.IsPathSegmentName(ref.Name)) > 0 {
		return packedRuntime{}, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name)
	}
	return r.looks.do(ctx, runtimeKey{gvk, key}, func(ctx context.Context) (packedRuntime, error) { return r.look(ctx, gvk, key) })
}

// look reads the runtime as it is stored now.
func (r *Resolver) look(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (packedRuntime, error) {
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(gvk)
	if err := r.live.Get(ctx, key, stored); err != nil {
		return packedRuntime{}, fmt.Errorf("read runtime: %w", err)
	}
	if value, found := r.packed.Get(stored.UID); found {
		if known := value.(packedRuntime); known.resourceVersion == stored.ResourceVersion {
			return known, nil
		}
	}
	runtime := trainer.NewRuntime(gvk.Kind)
	if err := r.live.Get(ctx, key, runtime); err != nil {
		return packedRuntime{}, fmt.Errorf("read runtime: %w", err)
	}
	taken, err := Take(runtime.Object)
	if err != nil {
		return packedRuntime{}, fmt.Errorf("runtime %s/%s: %w", gvk.Kind, key.Name, err)
	}
	known := packedRuntime{resourceVersion: runtime.GetResourceVersion(), written: writtenAt(runtime), packed: taken.Pack()}
	r.packed.Add(runtime.GetUID(), known)
	return known, nil
}

// writtenAt returns when an object was last written, to the second.
func writtenAt(object client.Object) time.Time {
	written := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	return written
}

// Kept returns the snapshot that a TrainJob has without a seal, read live: the one that was
// filed when the TrainJob was taken over, or the one that Trainer keeps; nil when there is
// none that is of this TrainJob and its runtime.
func (r *Resolver) Kept(ctx context.Context, job *trainer.TrainJob) (*Snapshot, error) {
	if filed, err := r.Filed(ctx, job); err != nil || filed != nil {
		return filed, err
	}
	config := &corev1.ConfigMap{}
	err := r.live.Get(ctx, configMapOf(job), config)
	switch {
	case err == nil && metav1.IsControlledBy(config, job):
		if s, err := FromYAML(config.Data[trainer.SnapshotKey]); err == nil && s.IsOf(job) {
			return s, nil
		}
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("read ConfigMap: %w", err)
	}
	return nil, nil
}

// Filed returns the snapshot that was filed when the TrainJob was taken over, read live; nil
// when there is none that is of this TrainJob and its runtime.
func (r *Resolver) Filed(ctx context.Context, job *trainer.TrainJob) (*Snapshot, error) {
	object := &v1alpha1.TrainingRuntimeSnapshot{}
	// Without its CRD, no such object is there.
	err := r.live.Get(ctx, client.ObjectKeyFromObject(job), object)
	switch {
	case err == nil && metav1.IsControlledBy(object, job):
		if s, err := FromObject(object); err == nil && s.IsOf(job) {
			return s, nil
		}
	case err != nil && !isAbsent(err):
		return nil, fmt.Errorf("read TrainingRuntimeSnapshot: %w", err)
	}
	return nil, nil
}

// configMapOf names the ConfigMap in which Trainer keeps the runtime of the TrainJob.
func configMapOf(job *trainer.TrainJob) types.NamespacedName {
	return types.NamespacedName{Namespace: job.Namespace, Name: trainer.SnapshotConfigMap(job.Name)}
}

// isAbsent tells whether the error says that the object, or its kind, does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
