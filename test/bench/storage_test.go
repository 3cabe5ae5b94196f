package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSharesOf(t *testing.T) {
	const (
		annotations = `"annotations":{"lifecycle.trainer.kubeflow.org/a":"b"},`
		fields      = `"f:metadata":{"f:annotations":{".":{},"f:lifecycle.trainer.kubeflow.org/a":{}}},`
	)
	for name, tc := range map[string]struct {
		stored string
		want   shares
	}{
		"without ours": {
			`{"metadata":{"annotations":{"example.com/a":"b"},"managedFields":[{"manager":"m"}],"name":"a"}}`,
			shares{allManagedFields: len(`"managedFields":[{"manager":"m"}],`)},
		},
		"only ours": {
			`{"metadata":{` + annotations + `"managedFields":[{"fieldsV1":{` + fields + `"f:spec":{}}}],"name":"a"}}`,
			shares{annotations: len(annotations), managedFields: len(fields), allManagedFields: len(`"managedFields":[{"fieldsV1":{` + fields + `"f:spec":{}}}],`)},
		},
		"ours beside those of others": {
			`{"metadata":{"annotations":{"example.com/a":"b","lifecycle.trainer.kubeflow.org/a":"b"},"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/a":{},"f:lifecycle.trainer.kubeflow.org/a":{}}}}}]}}`,
			shares{
				annotations: len(`,"lifecycle.trainer.kubeflow.org/a":"b"`), managedFields: len(`,"f:lifecycle.trainer.kubeflow.org/a":{}`),
				allManagedFields: len(`,"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/a":{},"f:lifecycle.trainer.kubeflow.org/a":{}}}}}]`),
			},
		},
		"a seal": {
			`{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/runtime-snapshot":"H4sI"}}}`,
			shares{annotations: len(`"annotations":{"lifecycle.trainer.kubeflow.org/runtime-snapshot":"H4sI"}`), seal: 4},
		},
		"neither annotations nor managedFields": {`{"metadata":{"name":"a"}}`, shares{}},
		"a dot of others": {
			`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{".":{}}}}}]}}`,
			shares{allManagedFields: len(`"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{".":{}}}}}]`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sharesOf([]byte(tc.stored))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(shares{})); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := sharesOf([]byte("k8s\x00")); err == nil {
		t.Error("protobuf was read as JSON")
	}
}

func TestBelongsToInstallation(t *testing.T) {
	for key, want := range map[string]bool{
		"/registry/leases/signalbox-system/signalbox-reconciler":                                                           true,
		"/registry/mutatingwebhookconfigurations/signalbox":                                                                true,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/lifecyclepolicies.lifecycle.trainer.kubeflow.org":        true,
		"/registry/trainer.kubeflow.org/clustertrainingruntimes/torch-distributed":                                         false,
		"/registry/lifecycle.trainer.kubeflow.org/trainingruntimesnapshots/storage-b/torch-distributed":                    false,
		"/registry/events/signalbox-system/signalbox-reconciler.1":                                                         false,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/trainjobs.trainer.kubeflow.org":                          false,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/trainingruntimesnapshots.lifecycle.trainer.kubeflow.org": true,
	} {
		if got := belongsToInstallation(key); got != want {
			t.Errorf("%s belongs to the installation = %v, want %v", key, got, want)
		}
	}
}

// trainJobOf is a stored TrainJob with an annotation of Signalbox, which takes 200 bytes.
func trainJobOf(t *testing.T) []byte {
	t.Helper()
	empty := `{"metadata":{"annotations":{"lifecycle.trainer.kubeflow.org/a":""},"name":"a"}}`
	bare := `{"metadata":{"name":"a"}}`
	stored := strings.Replace(empty, `""`, `"`+strings.Repeat("x", 200-len(empty)+len(bare))+`"`, 1)
	if found, err := sharesOf([]byte(stored)); err != nil || found.annotations != 200 {
		t.Fatalf("the annotation takes %d bytes (%v), want 200", found.annotations, err)
	}
	return []byte(stored)
}

func TestStorageTargets(t *testing.T) {
	snapshot := []byte(`{"metadata":{"name":"` + strings.Repeat("s", 477) + `"}}`)
	if len(snapshot) != 501 {
		t.Fatalf("the snapshot is %d bytes", len(snapshot))
	}
	keepingOf := func(configMap int, random bool) keeping {
		return keeping{
			runtime: "of-" + strings.Repeat("x", configMap/100), random: random,
			stock: kept{configMap: make([]byte, configMap), trainJob: []byte(`{"metadata":{}}`)},
			ours:  kept{trainJob: trainJobOf(t), snapshot: snapshot},
		}
	}
	for name, tc := range map[string]struct {
		found []keeping
		want  []bool
	}{
		"both met":                       {[]keeping{keepingOf(800, false), keepingOf(1000, false)}, []bool{true, true}},
		"annotations over a quarter":     {[]keeping{keepingOf(1000, false), keepingOf(700, false)}, []bool{false, true}},
		"a snapshot larger by a byte":    {[]keeping{keepingOf(500, false)}, []bool{false, false}},
		"random content is not judged":   {[]keeping{keepingOf(800, false), keepingOf(100, true)}, []bool{true, true}},
		"random content alone says none": {[]keeping{keepingOf(800, true)}, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := storageReport(tc.found, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, target := range report.Targets {
				got = append(got, target.Met)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("met (-want +got):\n%s\n%+v", diff, report.Targets)
			}
		})
	}
}

// The random runtime has another text in each variable, as long as before and the same each time.
func TestRandomize(t *testing.T) {
	runtime, again := runtimeOf("a", 20_000), runtimeOf("a", 20_000)
	plain, err := json.Marshal(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := randomize(runtime); err != nil {
		t.Fatal(err)
	}
	random, err := json.Marshal(runtime.Object)
	if err != nil {
		t.Fatal(err)
	}
	if len(random) != len(plain) {
		t.Errorf("%d bytes, want %d as before", len(random), len(plain))
	}
	if string(random) == string(plain) {
		t.Error("nothing has changed")
	}
	if err := randomize(again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(runtime.Object, again.Object) {
		t.Error("it is another the next time")
	}
}
