package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// services stands in for kube-proxy and the pods' network: an HTTP proxy on a Unix socket that
// the API server reaches the cluster by. It knows the addresses of Services, takes the next of
// the ready endpoints for each new connection, and leaves open connections alone. It knows the
// addresses of pods, too, for the API server's own proxy. What the API server calls by URL does not
// come through here.
type services struct {
	cluster *Cluster
	// config is the path of the API server's egress configuration.
	config string
	server *http.Server
	turn   atomic.Int64
	// kubelet has the pods, once it has started.
	kubelet atomic.Pointer[kubelet]
}

// dialTimeout bounds what an endpoint takes to accept a connection.
const dialTimeout = 5 * time.Second

func (c *Cluster) serveServices() (*services, error) {
	socket := filepath.Join(c.Dir, "services.sock")
	s := &services{cluster: c, config: filepath.Join(c.Dir, "egress.yaml")}
	if err := writeYAML(s.config, object{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []any{object{
			"name": "cluster",
			"connection": object{
				"proxyProtocol": "HTTPConnect",
				"transport":     object{"uds": object{"udsName": socket}},
			},
		}},
	}); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: dialTimeout}
	go func() { _ = s.server.Serve(listener) }() // until Close
	return s, nil
}

// ServeHTTP answers CONNECT CLUSTER-IP:PORT with a connection to one of the Service's pods, and
// CONNECT POD-IP:PORT with one to that pod.
func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	pod, err := s.dial(r.Context(), r.URL.Host)
	if err != nil {
		// The API server says no more than that it failed.
		s.cluster.log.step("a call of the Service at %s: %v", r.URL.Host, err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	apiServer, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = pod.Close()
		return
	}
	if _, err := io.WriteString(apiServer, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_, _ = apiServer.Close(), pod.Close()
		return
	}
	// When one of the two ends, so does the connection.
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	}
	go pipe(pod, apiServer)
	pipe(apiServer, pod)
}

func (s *services) dial(ctx context.Context, service string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	endpoints, found, err := s.endpoints(ctx, service)
	switch {
	case err != nil:
		return nil, err
	case !found:
		// Of a pod itself.
		endpoints = []string{service}
	case len(endpoints) == 0:
		return nil, fmt.Errorf("the Service at %s has no ready endpoint", service)
	}
	endpoint := endpoints[int(s.turn.Add(1))%len(endpoints)]
	// The API server calls from its start on, the kubelet comes later.
	pods := s.kubelet.Load()
	if pods == nil {
		return nil, fmt.Errorf("no pods are there yet that could be at %s", endpoint)
	}
	local, ok := pods.local(endpoint)
	if !ok {
		return nil, fmt.Errorf("no pod serves at %s", endpoint)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", local)
}

// endpoints returns the addresses of the ready pods of the Service at CLUSTER-IP:PORT. found is false where
// there is none.
func (s *services) endpoints(ctx context.Context, service string) (ready []string, found bool, err error) {
	ip, port, err := net.SplitHostPort(service)
	if err != nil {
		return nil, false, err
	}
	var known corev1.ServiceList
	var slices discoveryv1.EndpointSliceList
	if err := errors.Join(s.cluster.Client.List(ctx, &known), s.cluster.Client.List(ctx, &slices)); err != nil {
		return nil, false, err
	}
	for _, o := range known.Items {
		for _, p := range o.Spec.Ports {
			if o.Spec.ClusterIP == ip && strconv.Itoa(int(p.Port)) == port {
				return readyEndpoints(slices.Items, client.ObjectKeyFromObject(&o), p.Name), true, nil
			}
		}
	}
	return nil, false, nil
}

func readyEndpoints(slices []discoveryv1.EndpointSlice, service client.ObjectKey, port string) []string {
	var found []string
	for _, slice := range slices {
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, p := range slice.Ports {
			if p.Name == nil || *p.Name != port || p.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					found = append(found, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	return found
}

func (s *services) Close() error { return s.server.Close() }
