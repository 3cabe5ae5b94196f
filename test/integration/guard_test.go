package integration_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// clocks are the fields that no runtime may have.
var clocks = []string{"activeDeadlineSeconds", "ttlSecondsAfterFinished"}

// No release has a field in which a TrainJob could bring a clock into its runtime: the guard
// need not look at TrainJobs. Where one is written all the same, the API server refuses it or
// drops it.
func TestGuardClocksOfTrainJobs(t *testing.T) {
	for _, r := range releases {
		t.Run(r.version+" in the schema", func(t *testing.T) {
			for _, version := range r.crd.Spec.Versions {
				spec := version.Schema.DeepCopy().OpenAPIV3Schema.Properties["spec"]
				// The limits of the TrainJob itself are no second clock.
				delete(spec.Properties, "activeDeadlineSeconds")
				delete(spec.Properties, "ttlSecondsAfterFinished")
				delete(spec.Properties, "runPolicy")
				for _, path := range clocksIn(&spec, "spec") {
					t.Errorf("%s: there may be a clock at %s", version.Name, path)
				}
			}
		})
	}
	var err error
	if shared, err = cluster.Start(t.Context(), cluster.Options{KindsOnly: true, Log: os.Stderr}); err != nil {
		t.Fatal("start the cluster:", err)
	}
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error("close the cluster:", err)
		}
	})
	for _, r := range releases {
		t.Run(r.version, func(t *testing.T) {
			s := newScene(t, r)
			s.install()
			testClocksOfTrainJobs(s)
		})
	}
}

// clocksIn lists where the schema has one of the fields, or lets anything through.
func clocksIn(schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	var found []string
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields || schema.XEmbeddedResource {
		found = append(found, path+".*")
	}
	for name, property := range schema.Properties {
		for _, clock := range clocks {
			if name == clock {
				found = append(found, path+"."+name)
			}
		}
		found = append(found, clocksIn(&property, path+"."+name)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		found = append(found, clocksIn(schema.Items.Schema, path+"[*]")...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		found = append(found, clocksIn(schema.AdditionalProperties.Schema, path+".{}")...)
	}
	return found
}

// withClocks adds both fields to each object within a value, and returns their paths.
func withClocks(value any, path string) []string {
	var paths []string
	switch value := value.(type) {
	case []any:
		for i, entry := range value {
			paths = append(paths, withClocks(entry, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		for key, field := range value {
			// Keys of these are free, as those of a map of text are.
			if key != "nodeSelector" && key != "labels" {
				paths = append(paths, withClocks(field, path+"."+key)...)
			}
		}
		for _, clock := range clocks {
			value[clock] = int64(5)
			paths = append(paths, path+"."+clock)
		}
	}
	return paths
}

// testClocksOfTrainJobs writes the fields wherever a patch of the runtime has an object, as
// every client does it.
func testClocksOfTrainJobs(s *scene) {
	clean := s.trainJob("job", suspended(), s.rich())
	spec := runtime.DeepCopyJSON(clean.Object["spec"].(map[string]any))
	var paths []string
	for _, field := range []string{"podSpecOverrides", "podTemplateOverrides", "runtimePatches"} {
		if s.release.spec[field] != nil {
			paths = append(paths, withClocks(spec[field], "spec."+field)...)
		}
	}
	// At the least those of the entry and of the target.
	if len(paths) < 4 {
		s.Fatalf("only %v in %s", paths, s.release.version)
	}
	bad := func(name string) *unstructured.Unstructured {
		job := s.trainJob(name)
		job.Object["spec"] = runtime.DeepCopyJSON(spec)
		return job
	}

	s.must(shared.Client.Create(s.ctx, clean.DeepCopy(), client.FieldValidation("Strict"), client.DryRunAll))
	err := shared.Client.Create(s.ctx, bad("strict"), client.FieldValidation("Strict"))
	for _, path := range paths {
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), fmt.Sprintf("unknown field %q", path)) {
			s.Errorf("created strictly with %s: %v", path, err)
		}
	}

	s.must(shared.Client.Create(s.ctx, clean))
	ignored := bad("ignored")
	s.must(shared.Client.Create(s.ctx, ignored, client.FieldValidation("Ignore")))
	patched := s.trainJob("patched", suspended())
	s.must(shared.Client.Create(s.ctx, patched))
	put := bad("patched")
	put.SetResourceVersion(patched.GetResourceVersion())
	s.must(shared.Client.Update(s.ctx, put, client.FieldValidation("Ignore")))
	want := s.object(clean.GetName()).Object["spec"]
	for _, name := range []string{"ignored", "patched"} {
		if diff := cmp.Diff(want, s.object(name).Object["spec"]); diff != "" {
			s.Errorf("TrainJob %s (-want +stored):\n%s", name, diff)
		}
	}

	err = shared.Client.Apply(s.ctx, client.ApplyConfigurationFromUnstructured(bad("applied")), client.FieldOwner("test"))
	if err == nil || !strings.Contains(err.Error(), "field not declared in schema") {
		s.Errorf("applied with %v", err)
	}
	left := s.trainJob("applied")
	if err := shared.Client.Get(s.ctx, client.ObjectKeyFromObject(left), left); !apierrors.IsNotFound(err) {
		s.Errorf("there is a TrainJob that was applied: %v", err)
	}
	if s.release.version == future {
		return
	}
	// The TrainJob's own deadline is the one clock that the API has.
	own := s.trainJob("own", suspended(), deadline(60))
	err = shared.Client.Create(s.ctx, own, client.FieldValidation("Strict"), client.DryRunAll)
	if knows := trainer.Detect(s.release.crd).ActiveDeadline; knows != (err == nil) {
		s.Errorf("created with a deadline of its own: %v", err)
	}
}
