package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// healthy returns a check that a GET of the URL answers 200.
func (c *Cluster) healthy(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		status, body, err := c.do(ctx, http.MethodGet, url, "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s answers %d: %s", url, status, body)
		}
		return err
	}
}

// serves returns a check that the URL of the health probe answers 200 and each
// URL of a webhook has a handler. Programs report ready when they listen, a
// moment before they have registered all handlers.
func (c *Cluster) serves(health string, webhooks []string) func(context.Context) error {
	healthy := c.healthy(health)
	return func(ctx context.Context) error {
		if err := healthy(ctx); err != nil {
			return err
		}
		for _, url := range webhooks {
			// An empty review is answered with an error of the handler's own.
			status, body, err := c.do(ctx, http.MethodPost, url, "{}")
			if err != nil {
				return err
			}
			if status == http.StatusNotFound || status >= http.StatusInternalServerError {
				return fmt.Errorf("%s answers %d: %s", url, status, body)
			}
		}
		return nil
	}
}

func (c *Cluster) do(ctx context.Context, method, url, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.Config != nil && strings.HasPrefix(url, c.Config.Host) {
		request.Header.Set("Authorization", "Bearer "+c.Config.BearerToken)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	return response.StatusCode, answer, err
}

// waitNamespaces waits for the namespaces that the API server makes itself,
// which it does after it has reported ready.
func (c *Cluster) waitNamespaces(ctx context.Context) error {
	return c.await(ctx, "the API server's own namespaces", func(ctx context.Context) error {
		for _, name := range []string{"default", "kube-system"} {
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// served checks that discovery lists the kinds that the installed definitions
// make.
func (c *Cluster) served(context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	served := map[string]bool{}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			served[r.Name+"."+group] = true
		}
	}
	for _, definition := range c.definitions {
		if !served[definition] {
			return errors.New(definition + " is not served")
		}
	}
	return nil
}

// await polls the check for at most readyTimeout and says what did not come.
func (c *Cluster) await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := poll(ctx, check); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
