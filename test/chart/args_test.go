package chart_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/signalbox-dev/signalbox/internal/guard"
)

func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		values         []string
		wantWebhook    []string
		wantReconciler []string
	}{
		"default values": {
			wantWebhook: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080", "--webhook-port=9443",
				"--runtimes-in-use=Deny", "--trainer-user=" + trainerUser, "--kueue-user=" + kueueUser,
				"--cert-secret=signalbox-webhook-cert", "--service=signalbox-webhook", "--webhook-configuration=signalbox",
			},
			wantReconciler: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080",
				"--leader-elect=true", "--workers=10", "--kube-api-qps=0", "--kube-api-burst=400", "--warn-before=10m",
			},
		},
		"a certificate of its own is read from its folder": {
			values: ownCertificate,
			wantWebhook: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080", "--webhook-port=9443",
				"--runtimes-in-use=Deny", "--trainer-user=" + trainerUser, "--kueue-user=" + kueueUser,
				"--cert-dir=/certificate",
			},
			wantReconciler: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080",
				"--leader-elect=true", "--workers=10", "--kube-api-qps=0", "--kube-api-burst=400", "--warn-before=10m",
			},
		},
		"so is one of cert-manager": {
			values: []string{"certificates.certManager.enabled=true"},
			wantWebhook: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080", "--webhook-port=9443",
				"--runtimes-in-use=Deny", "--trainer-user=" + trainerUser, "--kueue-user=" + kueueUser,
				"--cert-dir=/certificate",
			},
			wantReconciler: []string{
				"--log-level=info", "--log-format=json",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=:8080",
				"--leader-elect=true", "--workers=10", "--kube-api-qps=0", "--kube-api-burst=400", "--warn-before=10m",
			},
		},
		"large numbers are written as the flags read them": {
			values: []string{
				"log.level=debug", "log.format=text", "metrics.port=0",
				"reconciler.workers=2000000", "reconciler.kubeAPI.qps=1000000", "reconciler.kubeAPI.burst=3000000",
				"reconciler.warnBefore=0s", "pprof.enabled=true",
			},
			wantWebhook: []string{
				"--log-level=debug", "--log-format=text",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=0", "--pprof-bind-address=localhost:6060", "--webhook-port=9443",
				"--runtimes-in-use=Deny", "--trainer-user=" + trainerUser, "--kueue-user=" + kueueUser,
				"--cert-secret=signalbox-webhook-cert", "--service=signalbox-webhook", "--webhook-configuration=signalbox",
			},
			wantReconciler: []string{
				"--log-level=debug", "--log-format=text",
				"--health-probe-bind-address=:8081", "--metrics-bind-address=0", "--pprof-bind-address=localhost:6060",
				"--leader-elect=true", "--workers=2000000", "--kube-api-qps=1000000", "--kube-api-burst=3000000", "--warn-before=0s",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string][]string{"webhook": tc.wantWebhook, "reconciler": tc.wantReconciler}
			if diff := cmp.Diff(want, arguments(t, tc.values...)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFeatures covers the flags of features: each is there only where the feature is off.
func TestFeatures(t *testing.T) {
	for name, tc := range map[string]struct {
		values          []string
		webhook, active []string
	}{
		"default values":     {},
		"no snapshots":       {values: []string{"snapshots.enabled=false"}, webhook: []string{"--snapshots=false"}, active: []string{"--snapshots=false"}},
		"no gate":            {values: []string{"snapshots.gate=false"}, webhook: []string{"--gate=false"}},
		"no policies":        {values: []string{"policies.enabled=false"}, webhook: []string{"--policies=false"}, active: []string{"--policies=false"}},
		"nothing is removed": {values: []string{"ttl.enabled=false"}, active: []string{"--ttl=false"}},
		"no guard":           {values: []string{"runtimes.guard=false"}, active: []string{"--audit=false"}},
		"every feature is off": {
			values:  allOff,
			webhook: []string{"--gate=false", "--policies=false", "--snapshots=false"},
			active:  []string{"--audit=false", "--policies=false", "--snapshots=false", "--ttl=false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			flags := regexp.MustCompile("^--(snapshots|gate|policies|ttl|audit)=")
			got := map[string][]string{}
			for component, args := range arguments(t, tc.values...) {
				for _, arg := range args {
					if flags.MatchString(arg) {
						got[component] = append(got[component], arg)
					}
				}
			}
			want := map[string][]string{"webhook": tc.webhook, "reconciler": tc.active}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreMapEntries(func(_ string, args []string) bool { return args == nil })); diff != "" {
				t.Errorf("flags of features (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoGuardAllowsDisruption: what is never asked needs no list of TrainJobs.
func TestNoGuardAllowsDisruption(t *testing.T) {
	checkFlag(t, "--runtimes-in-use", "--runtimes-in-use=Allow", "runtimes.guard=false", "runtimes.inUse=Deny")
}

// TestRuntimesInUse covers each value, and what the policy in the API server has no part in.
func TestRuntimesInUse(t *testing.T) {
	for _, mode := range []guard.Mode{guard.Deny, guard.Warn, guard.Allow} {
		t.Run(string(mode), func(t *testing.T) {
			args := arguments(t, append(withPolicy, "runtimes.inUse="+string(mode))...)
			if want := "--runtimes-in-use=" + string(mode); !slices.Contains(args["webhook"], want) {
				t.Errorf("arguments %q, want %q among them", args["webhook"], want)
			}
		})
	}
}

// TestTrainerUser covers what is known without a cluster: an account that is given, else the
// one of Trainer's releases.
func TestTrainerUser(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		// want is empty for no such argument.
		want string
	}{
		"default values":           {want: "--trainer-user=" + trainerUser},
		"an account that is given": {values: []string{"trainer.serviceAccount=team-a/my-trainer.v2"}, want: "--trainer-user=system:serviceaccount:team-a:my-trainer.v2"},
		"early deadlines are kept": {values: []string{"trainer.correctEarlyDeadlines=false"}},
		"kept, and an account is given": {
			values: []string{"trainer.correctEarlyDeadlines=false", "trainer.serviceAccount=team-a/my-trainer.v2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkFlag(t, "--trainer-user", tc.want, tc.values...)
		})
	}
}

// TestKueueUser does the same for Kueue.
func TestKueueUser(t *testing.T) {
	given := "kueue.serviceAccount=team-a/my-kueue.v2"
	for name, tc := range map[string]struct {
		values []string
		// want is empty for no such argument.
		want string
	}{
		"default values":                                  {want: "--kueue-user=" + kueueUser},
		"an account that is given":                        {values: []string{given}, want: "--kueue-user=system:serviceaccount:team-a:my-kueue.v2"},
		"no snapshots are shown":                          {values: []string{"kueue.showSnapshots=false"}},
		"no snapshots are shown, and an account is given": {values: []string{"kueue.showSnapshots=false", given}},
		"there are no snapshots":                          {values: []string{"snapshots.enabled=false", "kueue.showSnapshots=true", given}},
	} {
		t.Run(name, func(t *testing.T) {
			checkFlag(t, "--kueue-user", tc.want, tc.values...)
		})
	}
}

// checkFlag checks that the webhook is given a flag once, as this argument, or not at all.
func checkFlag(t *testing.T, flag, want string, values ...string) {
	t.Helper()
	got := ""
	for _, argument := range arguments(t, values...)["webhook"] {
		if strings.HasPrefix(argument, flag) {
			got += argument
		}
	}
	if got != want {
		t.Errorf("argument %q, want %q", got, want)
	}
}

// TestCommandsKnowTheirArguments gives each command the arguments of each variant, and asks
// for help last, so that it reads them all and goes no further.
func TestCommandsKnowTheirArguments(t *testing.T) {
	binaries := map[string]string{}
	for _, component := range []string{"webhook", "reconciler"} {
		binaries[component] = t.TempDir() + "/" + component
		if _, err := command("go", "build", "-o", binaries[component], "./cmd/"+component); err != nil {
			t.Fatalf("build the %s: %v", component, err)
		}
	}
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			for component, args := range arguments(t, values...) {
				if _, err := command(binaries[component], append(args, "--help")...); err != nil {
					t.Errorf("%s %q: %v", component, args, err)
				}
			}
		})
	}
}

// arguments returns the arguments of the container of each component.
func arguments(t *testing.T, values ...string) map[string][]string {
	t.Helper()
	args := map[string][]string{}
	for name, deployment := range named[*appsv1.Deployment](t, render(t, values...)) {
		containers := deployment.Spec.Template.Spec.Containers
		if len(containers) != 1 {
			t.Fatalf("%s has %d containers, want 1", name, len(containers))
		}
		args[containers[0].Name] = containers[0].Args
	}
	return args
}
