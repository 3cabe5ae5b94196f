package chart_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// TestTrainerUserFromTheCluster lets Helm look at a cluster: an API server that knows the
// kinds of the chart and holds nothing but Deployments.
func TestTrainerUserFromTheCluster(t *testing.T) {
	byChart := map[string]string{
		"app.kubernetes.io/name": "kubeflow-trainer", "app.kubernetes.io/part-of": "kubeflow", "app.kubernetes.io/component": "manager",
	}
	byKustomize := map[string]string{
		"app.kubernetes.io/name": "trainer", "app.kubernetes.io/part-of": "kubeflow", "app.kubernetes.io/component": "manager",
	}
	notebooks := map[string]string{
		"app.kubernetes.io/name": "notebooks", "app.kubernetes.io/part-of": "kubeflow", "app.kubernetes.io/component": "manager",
	}
	others := []appsv1.Deployment{
		deployment("web", "unlabelled", nil, "web"),
		deployment("kubeflow", "notebook-controller-manager", notebooks, "notebooks"),
		deployment("kubeflow", "kubeflow-trainer-ui", byKustomize, "ui"),
		deployment("team", "trainer-controller-manager", map[string]string{"app": "mine"}, "mine"),
	}
	for name, tc := range map[string]struct {
		trainer []appsv1.Deployment
		values  []string
		want    string
	}{
		"no Trainer": {want: trainerUser},
		"Trainer by its manifests": {
			trainer: []appsv1.Deployment{deployment("ml", "kubeflow-trainer-controller-manager", byKustomize, "kubeflow-trainer-controller-manager")},
			want:    "system:serviceaccount:ml:kubeflow-trainer-controller-manager",
		},
		"Trainer by its chart, under a name of one's own": {
			trainer: []appsv1.Deployment{deployment("ml", "tr-controller-manager", byChart, "tr")},
			want:    "system:serviceaccount:ml:tr",
		},
		"Trainer without a service account of its own": {
			trainer: []appsv1.Deployment{deployment("ml", "kubeflow-trainer-controller-manager", byKustomize, "")},
			want:    "system:serviceaccount:ml:default",
		},
		"the values say another": {
			trainer: []appsv1.Deployment{deployment("ml", "kubeflow-trainer-controller-manager", byKustomize, "")},
			values:  []string{"trainer.serviceAccount=given/account"},
			want:    "system:serviceaccount:given:account",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := templateIn(t, append(tc.trainer, others...), tc.values...)
			checkContains(t, manifests, "--trainer-user="+tc.want+"\n", "== '"+tc.want+"')")
		})
	}
}

// TestKueueUserFromTheCluster does the same for Kueue.
func TestKueueUserFromTheCluster(t *testing.T) {
	byKustomize := map[string]string{
		"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "controller", "control-plane": "controller-manager",
	}
	byChart := func(name, version string) map[string]string {
		return map[string]string{
			"app.kubernetes.io/name": name, "app.kubernetes.io/component": "controller", "control-plane": "controller-manager",
			"app.kubernetes.io/instance": "release", "helm.sh/chart": "kueue-" + version,
		}
	}
	dashboard := map[string]string{"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "dashboard"}
	populator := map[string]string{
		"app.kubernetes.io/name": "kueue-populator", "control-plane": "controller-manager", "helm.sh/chart": "kueue-populator-0.19.2",
	}
	appWrapper := map[string]string{"app.kubernetes.io/name": "appwrapper", "control-plane": "controller-manager"}
	others := []appsv1.Deployment{
		deployment("kueue-system", "unlabelled-controller-manager", nil, "unlabelled"),
		deployment("kueue-system", "kueue-kueueviz-backend", dashboard, "viz"),
		deployment("kueue-system", "kueue-populator", populator, "populator"),
		deployment("appwrapper-system", "appwrapper-controller-manager", appWrapper, "appwrapper"),
	}
	for name, tc := range map[string]struct {
		kueue  []appsv1.Deployment
		values []string
		want   string
	}{
		"no Kueue": {want: kueueUser},
		"Kueue by its manifests": {
			kueue: []appsv1.Deployment{deployment("kueue-system", "kueue-controller-manager", byKustomize, "kueue-controller-manager")},
			want:  kueueUser,
		},
		"Kueue by its manifests, in another namespace": {
			kueue: []appsv1.Deployment{deployment("queues", "kueue-controller-manager", byKustomize, "kueue-controller-manager")},
			want:  "system:serviceaccount:queues:kueue-controller-manager",
		},
		"Kueue by its chart, under a name of one's own": {
			kueue: []appsv1.Deployment{deployment("queues", "jobs-controller-manager", byChart("kueue", "0.19.2"), "jobs-controller-manager")},
			want:  "system:serviceaccount:queues:jobs-controller-manager",
		},
		"Kueue by its chart, which has another name": {
			kueue: []appsv1.Deployment{deployment("queues", "q-jobs-controller-manager", byChart("jobs", "v0.14.0"), "q-jobs-controller-manager")},
			want:  "system:serviceaccount:queues:q-jobs-controller-manager",
		},
		"Kueue without a service account of its own": {
			kueue: []appsv1.Deployment{deployment("queues", "kueue-controller-manager", byKustomize, "")},
			want:  "system:serviceaccount:queues:default",
		},
		"the values say another": {
			kueue:  []appsv1.Deployment{deployment("queues", "kueue-controller-manager", byKustomize, "")},
			values: []string{"kueue.serviceAccount=given/account"},
			want:   "system:serviceaccount:given:account",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := templateIn(t, append(tc.kueue, others...), tc.values...)
			checkContains(t, manifests, "--kueue-user="+tc.want+"\n", "== '"+tc.want+"'\n", "--trainer-user="+trainerUser+"\n")
		})
	}
	t.Run("no snapshots are shown", func(t *testing.T) {
		kueue := deployment("queues", "kueue-controller-manager", byKustomize, "kueue-controller-manager")
		if manifests := templateIn(t, append(others, kueue), "kueue.showSnapshots=false"); strings.Contains(manifests, "queues") {
			t.Errorf("the manifests know the account:\n%s", manifests)
		}
	})
}

// templateIn renders the chart as Helm does where it sees the cluster that it installs into.
func templateIn(t *testing.T, deployments []appsv1.Deployment, values ...string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", cluster(t, deployments))
	args := []string{"template", "signalbox", chart, "--namespace", namespace, "--dry-run=server", "--disable-openapi-validation"}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	manifests, err := command(helm, args...)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

func checkContains(t *testing.T, manifests string, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if !strings.Contains(manifests, want) {
			t.Errorf("the manifests have no %q", want)
		}
	}
}

func deployment(namespace, name string, labels map[string]string, account string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	d.Spec.Template.Spec.ServiceAccountName = account
	return d
}

// cluster serves the Deployments and returns the path of a kubeconfig for it.
func cluster(t *testing.T, deployments []appsv1.Deployment) string {
	t.Helper()
	list := appsv1.DeploymentList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, Items: deployments,
	}
	answers := discovery(render(t))
	answers["/version"] = version.Info{Major: "1", Minor: "33", GitVersion: "v1.33.0"}
	answers["/apis/apps/v1/deployments"] = list
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, found := answers[r.URL.Path]
		if !found {
			// What the chart renders is not there yet.
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Errorf("answer %s: %v", r.URL.Path, err)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// discovery returns, by path, how an API server that knows the kinds of the objects tells so.
func discovery(objects []runtime.Object) map[string]any {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, object := range objects {
		kinds[object.GetObjectKind().GroupVersionKind()] = true
	}
	resources := map[schema.GroupVersion]*metav1.APIResourceList{}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	answers := map[string]any{"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
	for kind := range kinds {
		gv := kind.GroupVersion()
		if resources[gv] == nil {
			resources[gv] = &metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String(),
			}
			answers[strings.Replace("/apis/"+gv.String(), "/apis/v1", "/api/v1", 1)] = resources[gv]
			if gv.Group != "" {
				served := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{
					Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
				})
			}
		}
		resources[gv].APIResources = append(resources[gv].APIResources, metav1.APIResource{
			Name: strings.ToLower(kind.Kind) + "s", Kind: kind.Kind, Verbs: metav1.Verbs{"get", "list"},
			Namespaced: !strings.HasPrefix(kind.Kind, "Cluster") && !strings.HasSuffix(kind.Kind, "Configuration") &&
				kind.Kind != "CustomResourceDefinition",
		})
	}
	answers["/apis"] = groups
	return answers
}
