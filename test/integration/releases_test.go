package integration_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/internal/trainer"
	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// release is a Trainer: its CRD of TrainJobs, and how its controller treats them.
type release struct {
	version string
	// minor names the module in test/trainers that pins the release.
	minor string
	// knows is what Signalbox has to find out.
	knows trainer.Capabilities

	// restsWhenFinished: the controller does not touch a finished TrainJob.
	restsWhenFinished bool
	// keepsDeadline: it keeps a Failed of the reason DeadlineExceeded, and drops all others.
	keepsDeadline bool
	// updates: it writes the status by PUT and not by a merge patch.
	updates bool

	// spec and status are fields that a TrainJob of this release may have. No two releases
	// have the same spec.
	spec, status map[string]any
	// extend makes the CRD that a release to come might have.
	extend func(*apiextensionsv1.CustomResourceDefinition)

	crd *apiextensionsv1.CustomResourceDefinition
}

// future is the release that does not exist yet.
const future = "future"

var releases = []*release{{
	version: "2.0.0", minor: "2.0",
	restsWhenFinished: true, updates: true,
	spec:   map[string]any{"podSpecOverrides": []any{overrides(map[string]any{"nodeSelector": nodeSelector()})}},
	status: map[string]any{"jobsStatus": []any{jobStatus()}},
}, {
	version: "2.1.0", minor: "2.1",
	updates: true,
	spec: map[string]any{"podTemplateOverrides": []any{overrides(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"team": "x"}},
		"spec":     map[string]any{"nodeSelector": nodeSelector()},
	})}},
	status: map[string]any{"jobsStatus": []any{jobStatus()}},
}, {
	version: "2.2.1", minor: "2.2",
	knows:         trainer.Capabilities{ActiveDeadline: true},
	keepsDeadline: true,
	spec:          map[string]any{"runtimePatches": runtimePatches(nil)},
	status:        map[string]any{"jobsStatus": []any{jobStatus()}, "trainerStatus": trainerStatus()},
}, {
	version: "2.3.0", minor: "2.3",
	knows:         trainer.Capabilities{ActiveDeadline: true, RuntimeSnapshot: true},
	keepsDeadline: true,
	spec:          map[string]any{"runtimePatches": runtimePatches(map[string]any{"terminationGracePeriodSeconds": int64(7)})},
	status:        map[string]any{"jobsStatus": []any{jobStatus()}, "trainerStatus": trainerStatus()},
}, {
	version: future, minor: "2.3",
	knows:         trainer.Capabilities{ActiveDeadline: true, RuntimeSnapshot: true, TTL: true, RunPolicy: true},
	keepsDeadline: true,
	spec: map[string]any{
		"runtimePatches": runtimePatches(map[string]any{"terminationGracePeriodSeconds": int64(7)}),
		"runPolicy":      map[string]any{"backoffLimit": int64(3), "unheard": map[string]any{"of": []any{"a", int64(1), true}}},
	},
	status: map[string]any{
		"jobsStatus":    []any{jobStatus()},
		"trainerStatus": trainerStatus(),
		"startTime":     "2026-03-01T12:00:00Z",
		"attempts":      []any{map[string]any{"number": int64(1), "unheard": "of"}},
	},
	extend: func(crd *apiextensionsv1.CustomResourceDefinition) {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		any := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
		spec, status := schema.Properties["spec"], schema.Properties["status"]
		spec.Properties["runPolicy"] = any
		spec.Properties["ttlSecondsAfterFinished"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
		status.Properties["startTime"] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
		status.Properties["attempts"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &any},
		}
		later := crd.Spec.Versions[0].DeepCopy()
		later.Name, later.Storage = "v1beta1", false
		crd.Spec.Versions = append(crd.Spec.Versions, *later)
	},
}}

// overrides are patches of the pods of a job as Trainer 2.0 and 2.1 take them.
func overrides(patch map[string]any) map[string]any {
	patch["targetJobs"] = []any{map[string]any{"name": "node"}}
	return patch
}

// runtimePatches are such patches as Trainer takes them since 2.2.
func runtimePatches(more map[string]any) []any {
	pod := map[string]any{"nodeSelector": nodeSelector()}
	maps.Copy(pod, more)
	job := map[string]any{"name": "node", "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}}}
	return []any{map[string]any{
		"manager": "example.com/queue",
		"trainingRuntimeSpec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"team": "x"}},
			"spec":     map[string]any{"replicatedJobs": []any{job}},
		}},
	}}
}

func nodeSelector() map[string]any { return map[string]any{"zone": "a"} }

func jobStatus() map[string]any {
	return map[string]any{"name": "node", "active": int64(1), "failed": int64(0), "ready": int64(1), "succeeded": int64(0), "suspended": int64(0)}
}

func trainerStatus() map[string]any {
	return map[string]any{"progressPercentage": int64(40), "lastUpdatedTime": "2026-03-01T12:00:00Z"}
}

// load reads the CRD of each release from the module that pins it.
func load(ctx context.Context) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	for _, r := range releases {
		dir, err := binaries.TrainerDir(ctx, root, os.Stderr, r.minor)
		if err != nil {
			return err
		}
		if base := filepath.Base(dir); r.version != future && base != "v2@v"+r.version {
			return fmt.Errorf("test/trainers/%s pins %s, the tests are about %s", r.minor, base, r.version)
		}
		data, err := os.ReadFile(filepath.Join(dir, "manifests", "base", "crds", "trainer.kubeflow.org_trainjobs.yaml"))
		if err != nil {
			return err
		}
		r.crd = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, r.crd); err != nil {
			return fmt.Errorf("the CRD of %s: %w", r.version, err)
		}
		if r.extend != nil {
			r.extend(r.crd)
		}
	}
	return nil
}

// install changes the CRD of TrainJobs to that of the release, and waits until the API server
// goes by it. It returns what the Trainer knew whose CRD was there before.
func (s *scene) install() trainer.Capabilities {
	s.Helper()
	var before trainer.Capabilities
	s.eventually("the update of the CRD", func() (bool, string) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.must(shared.Client.Get(s.ctx, client.ObjectKey{Name: trainer.CRDName}, crd))
		before = trainer.Detect(crd)
		release := s.release.crd.DeepCopy()
		crd.Annotations, crd.Spec = release.Annotations, release.Spec
		err := shared.Client.Update(s.ctx, crd)
		return err == nil, fmt.Sprint(err)
	})
	s.served()
	return before
}

// served waits until the API server knows, of the fields of all releases, those of this one.
func (s *scene) served() {
	s.Helper()
	s.eventually("the fields of Trainer "+s.release.version, func() (bool, string) {
		probe := s.trainJob("probe", suspended())
		for _, r := range releases {
			for field, value := range r.spec {
				set(value, "spec", field)(probe)
			}
		}
		if err := shared.Client.Create(s.ctx, probe, client.DryRunAll); err != nil {
			return false, err.Error()
		}
		want := s.trainJob("probe", suspended(), s.rich())
		set(trainer.ControllerName, "spec", "managedBy")(want)
		diff := cmp.Diff(want.Object["spec"], probe.Object["spec"])
		return diff == "", "fields that are missing (-) and too many (+):\n" + diff
	})
}

// The CRDs of the releases are the ones that Detect was written for.
func TestDeadlineDetect(t *testing.T) {
	for _, r := range releases {
		t.Run(r.version, func(t *testing.T) {
			if got := trainer.Detect(r.crd); got != r.knows {
				t.Errorf("Detect = %+v, want %+v", got, r.knows)
			}
		})
	}
	latest := releases[len(releases)-1].crd
	for name, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   trainer.Capabilities
	}{
		"the API as a version that is not known": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] },
		},
		"the API also as a later version without the fields": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2"})
			},
			want: releases[len(releases)-1].knows,
		},
		"no schema": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil },
		},
		"no CRD": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) { *crd = apiextensionsv1.CustomResourceDefinition{} },
		},
		"the grace period of pods elsewhere in the spec": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
				spec.Properties["elsewhere"] = spec.Properties["runtimePatches"]
				delete(spec.Properties, "runtimePatches")
			},
			want: trainer.Capabilities{ActiveDeadline: true, TTL: true, RunPolicy: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := latest.DeepCopy()
			tc.change(crd)
			if got := trainer.Detect(crd); got != tc.want {
				t.Errorf("Detect = %+v, want %+v", got, tc.want)
			}
		})
	}
}
