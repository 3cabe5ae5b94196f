package cluster

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// user is an identity that the API server knows by a token.
type user struct {
	name   string
	groups []string
	token  string
}

const (
	adminUser             = "cluster-admin"
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler"
)

// The service accounts that the released manifests of the neighbours bind.
var (
	jobSetUser  = serviceAccount(jobSetNamespace, "jobset-controller-manager")
	trainerUser = serviceAccount(trainerNamespace, "kubeflow-trainer-controller-manager")
	kueueUser   = serviceAccount(kueueNamespace, "kueue-controller-manager")
	kwokUser    = serviceAccount("kube-system", "kwok-controller")
)

func serviceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// newUser returns a user in the groups that the API server would put it in.
func newUser(name string, groups ...string) user {
	if rest, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return user{name: name, groups: append(groups, "system:authenticated"), token: rand.Text()}
}

// writeUsers writes the API server's token file and a kubeconfig for each user.
func (c *Cluster) writeUsers(server string) error {
	var tokens strings.Builder
	for _, u := range []user{
		newUser(adminUser, "system:masters"),
		newUser(controllerManagerUser), newUser(schedulerUser), newUser(kwokUser),
		newUser(jobSetUser), newUser(trainerUser), newUser(kueueUser),
		newUser(webhookUser), newUser(reconcilerUser),
	} {
		fmt.Fprintf(&tokens, "%s,%s,%s,\"%s\"\n", u.token, u.name, u.name, strings.Join(u.groups, ","))
		if err := c.writeKubeconfig(u.name, server, u.token); err != nil {
			return err
		}
	}
	return os.WriteFile(c.tokenFile(), []byte(tokens.String()), 0o600)
}

func (c *Cluster) writeKubeconfig(user, server, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.certs.pems["ca.crt"]}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "cluster"
	return clientcmd.WriteToFile(*config, c.kubeconfig(user))
}

func (c *Cluster) tokenFile() string { return filepath.Join(c.Dir, "tokens.csv") }

// kubeconfig returns the path of the kubeconfig of a user that writeUsers knows, or of a pod.
func (c *Cluster) kubeconfig(user string) string {
	return filepath.Join(c.Dir, "kubeconfig", strings.ReplaceAll(user, ":", "_"))
}

// ConfigFor returns a configuration that acts as another user: the cluster admin
// impersonates it. A service account is named system:serviceaccount:NAMESPACE:NAME
// and is put in the groups of service accounts; system:authenticated is always
// added. The user need not exist.
func (c *Cluster) ConfigFor(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: newUser(user, groups...).groups}
	return config
}

// ClientFor returns a client like Client that acts as another user, see ConfigFor.
func (c *Cluster) ClientFor(user string, groups ...string) (client.Client, error) {
	return newClient(c.ConfigFor(user, groups...))
}
