package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pod is a pod of Signalbox that runs as a process of this machine.
type Pod struct {
	Namespace, Name, Component string
	Process                    *Process
	// Webhook is where a webhook serves (HOST:PORT).
	Webhook string

	uid     types.UID
	ip      string
	ports   []int
	stored  corev1.Pod // as last seen
	started metav1.Time
	ready   bool
	ending  bool
}

// kubelet stands in for the kubelets of the nodes that pods of Signalbox are scheduled to. It
// runs their containers on this machine with args, environment, Secrets and a token of the
// service account as the pod has it, says in its status when it is ready, starts it again when
// it exits, and ends it as kubelets do: the wait of its preStop hook, SIGTERM, and SIGKILL when
// the grace period is over.
type kubelet struct {
	cluster *Cluster
	ports   *ports
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*Pod
	last int
}

// lookEvery is how often pods are listed and probed.
const lookEvery = 200 * time.Millisecond

func (c *Cluster) startKubelet() (*kubelet, error) {
	ports, err := claimPorts()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{cluster: c, ports: ports, cancel: cancel, pods: map[types.UID]*Pod{}}
	k.done.Go(func() { k.run(ctx) })
	return k, nil
}

// Close ends the work, not the processes: they end with the cluster.
func (k *kubelet) Close() {
	k.cancel()
	k.done.Wait()
	_ = k.ports.Close()
}

// Pods returns the pods of a component, webhook or reconciler, that run and are to stay.
func (c *Cluster) Pods(component string) []*Pod {
	c.kubelet.mu.Lock()
	defer c.kubelet.mu.Unlock()
	var pods []*Pod
	for _, pod := range c.kubelet.pods {
		if pod.Component == component && !pod.ending && pod.Process != nil && pod.Process.Running() {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// local returns where a pod of Signalbox serves what is at this address of the pods' network.
func (k *kubelet) local(endpoint string) (string, bool) {
	ip, port, _ := net.SplitHostPort(endpoint)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range k.pods {
		if pod.ip != ip {
			continue
		}
		for _, p := range pod.stored.Spec.Containers[0].Ports {
			if strconv.Itoa(int(p.ContainerPort)) != port {
				continue
			}
			switch p.Name {
			case "metrics":
				return address(pod.ports[0]), true
			case "probes":
				return address(pod.ports[1]), true
			}
			return pod.Webhook, true
		}
	}
	return "", false
}

// run looks at the pods that the API server has until ctx ends.
func (k *kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		var list corev1.PodList
		// The API server may be stopped by a test; it is asked again.
		if err := k.cluster.Client.List(ctx, &list, client.MatchingLabels{nameLabel: signalboxName}); err == nil {
			for i := range list.Items {
				if list.Items[i].Spec.NodeName != "" {
					k.see(ctx, &list.Items[i])
				}
			}
			k.miss(list.Items)
		}
		pause(ctx, lookEvery)
	}
}

// see takes note of a pod as it is stored, and starts to play a new one.
func (k *kubelet) see(ctx context.Context, stored *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod, ok := k.pods[stored.UID]
	if !ok {
		k.last++
		pod = &Pod{
			Namespace: stored.Namespace, Name: stored.Name, Component: stored.Labels[componentLabel], uid: stored.UID,
			ip: fmt.Sprintf("10.244.%d.%d", k.last/250, k.last%250+1), ports: []int{k.ports.take(), k.ports.take(), k.ports.take()},
			started: metav1.Now(),
		}
		pod.Webhook = address(pod.ports[2])
		k.pods[stored.UID] = pod
		k.done.Go(func() { k.play(ctx, pod) })
	}
	pod.stored = *stored
	pod.ending = stored.DeletionTimestamp != nil
}

// miss has the pods end at once that are no longer stored.
func (k *kubelet) miss(stored []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, pod := range k.pods {
		if !slices.ContainsFunc(stored, func(s corev1.Pod) bool { return s.UID == uid }) {
			pod.ending = true
			pod.stored.DeletionGracePeriodSeconds = ptr.To[int64](0)
		}
	}
}

// play keeps a pod running until it is deleted.
func (k *kubelet) play(ctx context.Context, pod *Pod) {
	said := ""
	for ; ctx.Err() == nil; pause(ctx, lookEvery) {
		gone, err := k.step(ctx, pod)
		if gone {
			return
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			k.cluster.log.step("pod %s: %v", pod.Name, err)
		}
	}
}

// step does what the pod needs now, and tells whether that was its end.
func (k *kubelet) step(ctx context.Context, pod *Pod) (gone bool, err error) {
	k.mu.Lock()
	stored, ending := pod.stored, pod.ending
	k.mu.Unlock()
	if ending {
		err := k.end(ctx, pod, &stored)
		return err == nil, err
	}
	if pod.Process == nil {
		p, err := k.make(ctx, pod, &stored)
		if err != nil {
			return false, err
		}
		k.mu.Lock()
		pod.Process = p
		k.mu.Unlock()
	}
	if !pod.Process.Running() {
		if _, _, err := pod.Process.launch(); err != nil {
			return false, err
		}
	}
	isReady := pod.Process.ready(ctx) == nil
	if isReady == pod.ready && stored.Status.Phase == corev1.PodRunning {
		return false, nil
	}
	if err := k.report(ctx, pod, &stored, isReady); err != nil {
		return false, err
	}
	pod.ready = isReady
	return false, nil
}

// make returns the process of a pod, not yet started.
func (k *kubelet) make(ctx context.Context, pod *Pod, stored *corev1.Pod) (*Process, error) {
	c := k.cluster
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = stored.Namespace, stored.Spec.ServiceAccountName
	token := &authenticationv1.TokenRequest{}
	if err := c.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("a token of its service account: %w", err)
	}
	if err := c.writeKubeconfig(pod.Name, c.Config.Host, token.Status.Token); err != nil {
		return nil, err
	}
	mounts, err := k.mount(ctx, stored)
	if err != nil {
		return nil, err
	}
	path, flags := c.signalbox.reconciler, []string(nil)
	if pod.Component == "webhook" {
		path, flags = c.signalbox.webhook, []string{"--webhook-host=127.0.0.1", "--webhook-port=" + strconv.Itoa(pod.ports[2])}
	}
	p, err := c.fromPod(pod.Name, stored, path, pod.Name, pod.ports[0], pod.ports[1], flags...)
	if err != nil {
		return nil, err
	}
	for i := range p.args {
		for inside, folder := range mounts {
			if flag, ok := strings.CutSuffix(p.args[i], "="+inside); ok {
				p.args[i] = flag + "=" + folder
			}
		}
	}
	p.ready = c.healthy(p.probe)
	return p, nil
}

// mount writes the Secrets that the pod's only container mounts to folders of this machine, and
// returns these by the path in the container.
func (k *kubelet) mount(ctx context.Context, stored *corev1.Pod) (map[string]string, error) {
	folders := map[string]string{}
	for _, mount := range stored.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(stored.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 || stored.Spec.Volumes[i].Secret == nil {
			return nil, fmt.Errorf("volume %s is no Secret", mount.Name)
		}
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: stored.Namespace, Name: stored.Spec.Volumes[i].Secret.SecretName}
		if err := k.cluster.Client.Get(ctx, key, secret); err != nil {
			return nil, fmt.Errorf("mount volume %s: %w", mount.Name, err)
		}
		folder := filepath.Join(k.cluster.Dir, "pods", stored.Name, mount.Name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				return nil, err
			}
		}
		folders[mount.MountPath] = folder
	}
	return folders, nil
}

// report writes the status of a pod that runs.
func (k *kubelet) report(ctx context.Context, pod *Pod, stored *corev1.Pod, isReady bool) error {
	now, status := metav1.Now(), corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	conditions := slices.DeleteFunc(slices.Clone(stored.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type != corev1.PodScheduled
	})
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		conditions = append(conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
	container := stored.Spec.Containers[0]
	patch, err := json.Marshal(object{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &pod.started, PodIP: pod.ip, PodIPs: []corev1.PodIP{{IP: pod.ip}}, Conditions: conditions,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, Ready: isReady, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.started}},
		}},
	}})
	if err != nil {
		return err
	}
	return k.cluster.Client.Status().Patch(ctx, stored.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// end ends the process of a pod that is being deleted, and lets the pod go.
func (k *kubelet) end(ctx context.Context, pod *Pod, stored *corev1.Pod) error {
	if pod.Process != nil {
		grace := time.Duration(ptr.Deref(stored.DeletionGracePeriodSeconds, 30)) * time.Second
		ending, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if hook := stored.Spec.Containers[0].Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
			pause(ending, time.Duration(hook.PreStop.Sleep.Seconds)*time.Second)
		}
		if err := pod.Process.Stop(ending); err != nil && ctx.Err() == nil {
			k.cluster.log.step("pod %s: killed: it did not end within %s", pod.Name, grace)
		}
		pod.Process.Kill()
	}
	err := k.cluster.Client.Delete(ctx, stored, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.uid})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, pod.uid)
	k.ports.give(pod.ports...)
	return nil
}

// pause waits as long as that, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
