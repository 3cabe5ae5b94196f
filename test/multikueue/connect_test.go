package multikueue_test

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

const (
	// multiKueue is the value of spec.managedBy by which MultiKueue takes a TrainJob, and
	// the controller of its admission check.
	multiKueue = "kueue.x-k8s.io/multikueue"
	// connection names every object that connects the clusters.
	connection     = "multikueue"
	kueueNamespace = "kueue-system"
)

func kueueKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind}
}

func kueueObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != nil {
		object.Object["spec"] = spec
	}
	object.SetGroupVersionKind(kueueKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// connect lets Kueue of the manager send TrainJobs to the worker: queues of the manager with
// the admission check do so. It returns when Kueue says that it is connected.
func connect(ctx context.Context) error {
	kubeconfig, err := workerKubeconfig(ctx)
	if err != nil {
		return fmt.Errorf("give the manager access to the worker: %w", err)
	}
	to := kueueObject("MultiKueueCluster", "", connection, map[string]any{
		"clusterSource": map[string]any{"kubeConfig": map[string]any{"locationType": "Secret", "location": connection}},
	})
	check := kueueObject("AdmissionCheck", "", connection, map[string]any{
		"controllerName": multiKueue,
		"parameters":     map[string]any{"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": connection},
	})
	for _, object := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: kueueNamespace, Name: connection},
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		},
		to,
		kueueObject("MultiKueueConfig", "", connection, map[string]any{"clusters": []any{connection}}),
		check,
	} {
		if err := manager.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	for _, object := range []*unstructured.Unstructured{to, check} {
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if err := manager.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return fmt.Errorf("read %s: %w", object.GetKind(), err)
			}
			if conditionOf(object, "Active").Status == metav1.ConditionTrue {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("the %s is not active within %s: %v", object.GetKind(), patience, object.Object["status"])
			}
		}
	}
	return nil
}

// workerKubeconfig makes a service account on the worker with the rights that MultiKueue needs
// for TrainJobs and JobSets, the integrations that are on, and returns a kubeconfig for it.
// Kueue takes none with a path in it, nor one without the CA.
func workerKubeconfig(ctx context.Context) ([]byte, error) {
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kueueNamespace, Name: connection}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: connection}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"workloads"}, Verbs: all},
			{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"workloads/status"}, Verbs: []string{"get", "patch", "update"}},
			{APIGroups: []string{trainer.GroupVersion.Group}, Resources: []string{"trainjobs"}, Verbs: all},
			{APIGroups: []string{trainer.GroupVersion.Group}, Resources: []string{"trainjobs/status"}, Verbs: []string{"get"}},
			{APIGroups: []string{trainer.JobSetGroupVersionKind.Group}, Resources: []string{"jobsets"}, Verbs: all},
			{APIGroups: []string{trainer.JobSetGroupVersionKind.Group}, Resources: []string{"jobsets/status"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: connection},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: connection},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: kueueNamespace, Name: connection}},
		},
	} {
		if err := worker.Client.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	clients, err := kubernetes.NewForConfig(worker.Config)
	if err != nil {
		return nil, err
	}
	accounts := clients.CoreV1().ServiceAccounts(kueueNamespace)
	token, err := accounts.CreateToken(ctx, connection, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["worker"] = &clientcmdapi.Cluster{Server: worker.Config.Host, CertificateAuthorityData: worker.Config.CAData}
	config.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["worker"] = &clientcmdapi.Context{Cluster: "worker", AuthInfo: "manager"}
	config.CurrentContext = "worker"
	return clientcmd.Write(*config)
}
