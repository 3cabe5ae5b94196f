package cli_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// may is a rule that allows to get, list and watch these resources of an API group, "" for the core.
func may(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}

// as returns the scene with another user, who has these rights in the whole cluster and no others than
// each who is known has.
func (s *scene) as(rules ...rbacv1.PolicyRule) *scene {
	s.Helper()
	user, name := s.user()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	user.binding = &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	user.bind(name, "", role, rules)
	return user
}

// asIn does the same, with the rights in the scene's namespace alone.
func (s *scene) asIn(rules ...rbacv1.PolicyRule) *scene {
	s.Helper()
	user, name := s.user()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Rules: rules}
	user.binding = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	user.bind(name, s.namespace, role, rules)
	return user
}

// user returns a copy of the scene with a user of its own, and its name.
func (s *scene) user() (*scene, string) {
	s.Helper()
	name := "reader-" + strings.ToLower(rand.Text()[:8])
	user := *s
	user.cache, user.kubeconfig = s.TempDir(), filepath.Join(s.TempDir(), "kubeconfig")
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig)
	s.must(err)
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = name, []string{"system:authenticated"}
	}
	s.must(clientcmd.WriteToFile(*config, user.kubeconfig))
	return &user, name
}

// bind makes the role and the binding, and waits until the API server goes by them.
func (s *scene) bind(name, namespace string, role client.Object, rules []rbacv1.PolicyRule) {
	s.Helper()
	c := s.cluster.Client
	s.must(c.Create(s.ctx, role))
	s.must(c.Create(s.ctx, s.binding))
	s.Cleanup(func() {
		for _, object := range []client.Object{s.binding, role} {
			if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
				s.Error(err)
			}
		}
	})
	for _, rule := range rules {
		s.allowed(name, namespace, rule, true)
	}
}

// revoke takes the rights away that as or asIn gave.
func (s *scene) revoke(rules ...rbacv1.PolicyRule) {
	s.Helper()
	s.must(s.cluster.Client.Delete(s.ctx, s.binding))
	for _, rule := range rules {
		s.allowed(s.binding.GetName(), s.binding.GetNamespace(), rule, false)
	}
}

// allowed waits until the user may do the first thing of the rule, or may not.
func (s *scene) allowed(user, namespace string, rule rbacv1.PolicyRule, want bool) {
	s.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := map[string]any{
		"group": rule.APIGroups[0], "resource": resource, "subresource": subresource, "verb": rule.Verbs[0], "namespace": namespace,
	}
	if len(rule.ResourceNames) > 0 {
		attributes["name"] = rule.ResourceNames[0]
	}
	s.eventually(fmt.Sprintf("the right of %s to %v: %t", user, attributes, want), func() (bool, string) {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": user, "resourceAttributes": attributes},
		}}
		s.must(s.cluster.Client.Create(s.ctx, review))
		got, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
		return got == want, fmt.Sprint(review.Object["status"])
	})
}
