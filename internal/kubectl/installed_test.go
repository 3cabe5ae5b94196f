package kubectl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// readerThat reads these objects, or fails with err where that is not nil.
func readerThat(err error, objects ...client.Object) *Reader {
	funcs := interceptor.Funcs{}
	if err != nil {
		funcs.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}
	}
	return &Reader{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()}
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))

func TestInstalled(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	configuration := func(name string) client.Object {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made)}}
	}
	for name, tc := range map[string]struct {
		reader         *Reader
		known, is, may bool
		since          time.Time
		notes          []string
	}{
		"installed":            {reader: readerThat(nil, configuration("signalbox")), known: true, is: true, may: true, since: made},
		"not installed":        {reader: readerThat(nil), known: true},
		"only others":          {reader: readerThat(nil, configuration("kueue")), known: true},
		"may not be read":      {reader: readerThat(errForbidden), may: true, notes: []string{"no right to read the webhook configurations: whether Signalbox is installed is not known"}},
		"could not be read":    {reader: readerThat(errors.New("broken")), may: true, notes: []string{"cannot read the webhook configurations: broken: whether Signalbox is installed is not known"}},
		"kind that is unknown": {reader: readerThat(&meta.NoKindMatchError{}), known: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &Notes{}
			got := tc.reader.Installed(t.Context(), notes)
			if got.Known != tc.known || got.Is != tc.is || got.May() != tc.may || !got.Since.Equal(tc.since) || (got.Mutating != nil) != tc.is {
				t.Errorf("installation %+v, may be %v", got, got.May())
			}
			if diff := cmp.Diff(tc.notes, notes.All()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: trainer.CRDName}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"activeDeadlineSeconds": {Type: "integer"}}},
		}},
	}}}
	for name, tc := range map[string]struct {
		reader *Reader
		want   trainer.Capabilities
		known  bool
		notes  []string
	}{
		"Trainer 2.2":     {reader: readerThat(nil, crd), want: trainer.Capabilities{ActiveDeadline: true}, known: true},
		"no Trainer":      {reader: readerThat(nil), known: true},
		"may not be read": {reader: readerThat(errForbidden), notes: []string{"no right to read the CRD of TrainJobs: what the installed Trainer does is not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &Notes{}
			got, known := tc.reader.Capabilities(t.Context(), notes)
			if got != tc.want || known != tc.known {
				t.Errorf("%+v, known %v", got, known)
			}
			if diff := cmp.Diff(tc.notes, notes.All()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	kueue := schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kueue})
	mapper.Add(kueue.WithKind("Workload"), meta.RESTScopeNamespace)
	for name, tc := range map[string]struct {
		mapper meta.RESTMapper
		want   schema.GroupVersionKind
		found  bool
		notes  []string
	}{
		"Kueue":       {mapper: mapper, want: kueue.WithKind("Workload"), found: true},
		"no Kueue":    {mapper: meta.NewDefaultRESTMapper(nil)},
		"not to tell": {mapper: broken{meta.NewDefaultRESTMapper(nil)}, notes: []string{"cannot read the kinds of Kueue: broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &Notes{}
			got, found := (&Reader{mapper: tc.mapper}).Workloads(t.Context(), notes)
			if got != tc.want || found != tc.found {
				t.Errorf("%s, found %v", got, found)
			}
			if diff := cmp.Diff(tc.notes, notes.All()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// broken is a mapper that cannot ask the API server.
type broken struct{ meta.RESTMapper }

func (broken) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("broken")
}
