package builder

import "sigs.k8s.io/controller-runtime/pkg/client"

// Copies returns a copy of each object: a fake store writes into what it is given, and tests
// that run side by side give it the same objects.
func Copies(objects []client.Object) []client.Object {
	copies := make([]client.Object, len(objects))
	for i, object := range objects {
		copies[i] = object.DeepCopyObject().(client.Object)
	}
	return copies
}
