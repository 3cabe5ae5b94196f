package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kueueHooks are the API groups whose webhooks of Kueue are kept: those of its
// own kinds and of the two integrations that are on. The others would call a
// handler that Kueue does not register, and so refuse every Pod, for instance.
var kueueHooks = []any{"kueue.x-k8s.io", "trainer.kubeflow.org", "jobset.x-k8s.io"}

// pointWebhooks lets every webhook in objects call the local port of its
// server, which runs outside of the cluster, instead of a Service. The server is
// known by the namespace of that Service. It returns the URLs that will be called,
// by namespace.
func (c *Cluster) pointWebhooks(objects []*unstructured.Unstructured, ports map[string]int) (map[string][]string, error) {
	urls := map[string][]string{}
	point := func(config object, called bool) error {
		namespace, _, _ := unstructured.NestedString(config, "service", "namespace")
		path, _, _ := unstructured.NestedString(config, "service", "path")
		port, ok := ports[namespace]
		if !ok {
			return fmt.Errorf("a webhook with path %q belongs to a Service in namespace %q, which no part of the cluster serves", path, namespace)
		}
		url := "https://" + address(port) + path
		delete(config, "service")
		config["url"] = url
		config["caBundle"] = base64.StdEncoding.EncodeToString(c.certs.pems["ca.crt"])
		if called && !slices.Contains(urls[namespace], url) {
			urls[namespace] = append(urls[namespace], url)
		}
		return nil
	}
	for _, o := range objects {
		var err error
		switch {
		case isWebhookConfiguration(o):
			err = pointAdmission(o, point)
		case o.GetKind() == "CustomResourceDefinition":
			if config, ok, _ := nestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig"); ok {
				// With a single version there is nothing to convert, and JobSet, which
				// declares this webhook all the same, does not serve it.
				versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
				err = point(config, len(versions) > 1)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return urls, nil
}

func isWebhookConfiguration(o *unstructured.Unstructured) bool {
	return o.GetKind() == "MutatingWebhookConfiguration" || o.GetKind() == "ValidatingWebhookConfiguration"
}

func pointAdmission(o *unstructured.Unstructured, point func(config object, called bool) error) error {
	hooks, _ := o.Object["webhooks"].([]any)
	hooks = slices.DeleteFunc(hooks, func(h any) bool {
		config, _, _ := nestedMap(h.(object), "clientConfig", "service")
		return config["namespace"] == kueueNamespace && !forGroups(h.(object), kueueHooks)
	})
	o.Object["webhooks"] = hooks
	for _, h := range hooks {
		config, ok, err := nestedMap(h.(object), "clientConfig")
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("a webhook has no clientConfig")
		}
		if err := point(config, true); err != nil {
			return err
		}
	}
	return nil
}

// forGroups says whether all rules of the webhook are for the given API groups.
func forGroups(hook object, groups []any) bool {
	rules, _ := hook["rules"].([]any)
	for _, rule := range rules {
		list, _ := rule.(object)["apiGroups"].([]any)
		for _, group := range list {
			if !slices.Contains(groups, group) {
				return false
			}
		}
	}
	return true
}

// nestedMap returns the map itself where unstructured.NestedMap returns a copy.
func nestedMap(o object, fields ...string) (object, bool, error) {
	value, ok, err := unstructured.NestedFieldNoCopy(o, fields...)
	if !ok || err != nil {
		return nil, false, err
	}
	m, ok := value.(object)
	return m, ok, nil
}
