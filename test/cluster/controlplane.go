package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

// controllers are those of kube-controller-manager that a TrainJob's life needs.
const controllers = "job-controller,garbage-collector-controller,namespace-controller," +
	"serviceaccount-controller,ttl-after-finished-controller,node-lifecycle-controller," +
	"taint-eviction-controller,pod-garbage-collector-controller"

// podControllers are those that the option Pods needs besides.
// The Endpoints of a Service are what the API server's own proxy goes by.
const podControllers = "deployment-controller,replicaset-controller,endpointslice-controller,endpoints-controller"

// part returns a process that runs the program of that name as the user.
func (c *Cluster) part(name, path, user string, args ...string) *Process {
	p := &Process{
		Name:    name,
		LogPath: filepath.Join(c.Dir, "logs", name+".log"),
		path:    path,
		args:    args,
		env:     c.env(user),
		dir:     c.Dir,
		group:   c.supervisor.group,
		report:  c.log.step,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = append(c.parts, p)
	return p
}

// env is the whole environment of a process: nothing of the developer's own,
// such as a kubeconfig or a proxy, must reach it. Trainer looks for its serving
// certificate in the temporary folder and nowhere else.
func (c *Cluster) env(user string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.Dir, "TMPDIR=" + filepath.Join(c.Dir, "tmp"),
		"KUBECONFIG=" + c.kubeconfig(user),
	}
}

func (c *Cluster) newEtcd() *Process {
	c.EtcdURL = "http://" + address(c.ports.take())
	peers := "http://" + address(c.ports.take())
	p := c.part(binaries.Etcd, c.binaries[binaries.Etcd], adminUser,
		"--data-dir="+filepath.Join(c.Dir, "etcd"), "--listen-client-urls="+c.EtcdURL, "--advertise-client-urls="+c.EtcdURL,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers,
		"--log-level=warn",
		// The data need not outlive the machine, and tests wait for every write.
		"--unsafe-no-fsync")
	p.ready = c.healthy(c.EtcdURL + "/health")
	return p
}

func (c *Cluster) newAPIServer(port int) *Process {
	p := c.part(binaries.APIServer, c.binaries[binaries.APIServer], adminUser,
		"--etcd-servers="+c.EtcdURL, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir="+filepath.Join(c.Dir, "apiserver"),
		"--tls-cert-file="+c.certs.file("tls.crt"), "--tls-private-key-file="+c.certs.file("tls.key"),
		"--authorization-mode=RBAC", "--token-auth-file="+c.tokenFile(),
		"--service-account-key-file="+c.certs.file("tls.key"), "--service-account-signing-key-file="+c.certs.file("tls.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/16",
		// Pods of tests have no service account, and no kubelet wants its token.
		"--disable-admission-plugins=ServiceAccount", "--allow-privileged=true")
	if c.services != nil {
		p.args = append(p.args, "--egress-selector-config-file="+c.services.config)
	}
	healthy := c.healthy("https://" + address(port) + "/readyz")
	p.ready = func(ctx context.Context) error {
		if err := healthy(ctx); err != nil || len(c.definitions) == 0 {
			return err
		}
		return c.served(ctx) // a restarted one serves custom kinds a moment later
	}
	return p
}

func (c *Cluster) newControllerManager() *Process {
	controllers := controllers
	if c.options.Pods {
		controllers += "," + podControllers
	}
	args := []string{
		"--controllers=" + controllers, "--use-service-account-credentials=false",
		// kwok's nodes send no heartbeats. Without this they would be taken for lost every few minutes,
		// and their pods for not ready.
		"--node-monitor-grace-period=24h",
	}
	return c.component(binaries.ControllerManager, controllerManagerUser, append(args, c.rateFlags()...)...)
}

func (c *Cluster) newScheduler() *Process {
	return c.component(binaries.Scheduler, schedulerUser, c.rateFlags()...)
}

// unthrottled is a limit, in requests a second and at once, that no part of a test's cluster
// comes near. Not all parts know how to have none.
const unthrottled = 100000

// rateFlags are how many requests a component of Kubernetes may make.
func (c *Cluster) rateFlags() []string {
	if c.options.Unthrottled {
		return []string{fmt.Sprintf("--kube-api-qps=%d", unthrottled), fmt.Sprintf("--kube-api-burst=%d", unthrottled)}
	}
	return []string{"--kube-api-qps=200", "--kube-api-burst=400"}
}

// rateConfig adds to the configuration of a neighbour how many requests it may make; by default
// it says nothing.
func (c *Cluster) rateConfig(config object) object {
	if c.options.Unthrottled {
		config["clientConnection"] = object{"qps": unthrottled, "burst": unthrottled}
	}
	return config
}

func (c *Cluster) component(name, user string, args ...string) *Process {
	port, config := c.ports.take(), c.kubeconfig(user)
	p := c.part(name, c.binaries[name], user, append(args,
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--leader-elect=false",
		"--tls-cert-file="+c.certs.file("tls.crt"), "--tls-private-key-file="+c.certs.file("tls.key"))...)
	p.ready = c.healthy("https://" + address(port) + "/healthz")
	return p
}

// bindControllerManager gives the controller manager all rights: with one
// identity for all its controllers, the garbage collector's share is everything.
func (c *Cluster) bindControllerManager(ctx context.Context) error {
	return c.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-controller-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllerManagerUser}},
	})
}
