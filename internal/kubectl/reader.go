package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// scheme knows what the commands read as types.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
		trainer.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}()

// Reader reads from the API server, live and with nothing but get, list and watch.
type Reader struct {
	// Reader reads typed views and unstructured objects. Each request has its time.
	client.Reader
	Dynamic   dynamic.Interface
	Discovery discovery.DiscoveryInterface

	mapper meta.RESTMapper
	chunk  int64
	times  times
}

const (
	// patience is how long one request may take: what hangs must not keep the rest back.
	patience = 30 * time.Second
	// pagePatience is how long a page may take, which may be of many megabytes.
	pagePatience = 2 * time.Minute
	// anew is how often a list that the API server has forgotten begins again in chunks, before it is read
	// in one piece.
	anew = 3
)

// patient gives each request its time.
type patient struct{ client.Reader }

// Get implements [client.Reader].
func (p patient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Reader.Get(ctx, key, object, options...)
}

// List implements [client.Reader].
func (p patient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	return p.Reader.List(ctx, list, options...)
}

// Each lists the objects of a kind in this namespace, "" for all, and calls f for each, in pages. It returns
// the version from which to watch. Where the API server does not remember the list in its middle any more
// it begins anew: f gets objects again then, also those that have changed, and keeps them by their UID.
func (r *Reader) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selectors Selectors, f func(*unstructured.Unstructured) error) (resourceVersion string, err error) {
	return r.EachOf(ctx, gvk, namespace, selectors, func() {}, f)
}

// EachOf does the same, and calls again whenever it begins anew: what f got before then counts no more.
func (r *Reader) EachOf(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selectors Selectors, again func(), f func(*unstructured.Unstructured) error) (resourceVersion string, err error) {
	resource, err := r.resource(gvk, namespace)
	if err != nil {
		return "", err
	}
	options := metav1.ListOptions{LabelSelector: selectors.Label, FieldSelector: selectors.Field, Limit: r.chunk}
	for tries, refound := 0, false; ; {
		page, err := listPage(ctx, resource, options)
		switch {
		case (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) && options.Continue != "":
			if tries++; tries >= anew {
				options.Limit = 0
			}
			options.Continue = ""
			again()
			continue
		case apierrors.IsNotFound(err) && options.Continue == "" && !refound:
			// What is known of the kinds that are served may be hours old.
			refound = true
			meta.MaybeResetRESTMapper(r.mapper)
			if resource, err = r.resource(gvk, namespace); err != nil {
				return "", err
			}
			continue
		case err != nil:
			return "", err
		}
		for i := range page.Items {
			if err := f(&page.Items[i]); err != nil {
				return "", err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return page.GetResourceVersion(), nil
		}
	}
}

func listPage(ctx context.Context, resource dynamic.ResourceInterface, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, pagePatience)
	defer cancel()
	return resource.List(ctx, options)
}

// Watch watches the objects of a kind in this namespace, "" for all, from a version on that Each returned.
// It also gets bookmarks.
func (r *Reader) Watch(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selectors Selectors, resourceVersion string) (watch.Interface, error) {
	resource, err := r.resource(gvk, namespace)
	if err != nil {
		return nil, err
	}
	return resource.Watch(ctx, metav1.ListOptions{
		LabelSelector: selectors.Label, FieldSelector: selectors.Field,
		ResourceVersion: resourceVersion, AllowWatchBookmarks: true,
	})
}

// resource returns the client of a kind in this namespace, if its objects belong to namespaces.
func (r *Reader) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	return r.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// Side reads what an answer can do without. What is not installed, may not be read or fails gives false and
// a note. what names it in the plural, such as "JobSets", or with its name.
func (r *Reader) Side(ctx context.Context, what string, read func() error, notes *Notes) (found bool) {
	err := read()
	if err == nil {
		return true
	}
	if ctx.Err() == nil {
		notes.Add(Why(what, err))
	}
	return false
}

// Why says why something could not be read, as a note.
func Why(what string, err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return what + ": not installed"
	case apierrors.IsNotFound(err):
		return what + ": not found"
	case apierrors.IsForbidden(err):
		return "no right to read " + what
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "it takes too long to read " + what
	}
	return fmt.Sprintf("cannot read %s: %v", what, err)
}

// NotInstalled tells whether the error says that there is no such kind, or no such object.
func NotInstalled(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
