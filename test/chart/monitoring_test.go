package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // registers the metrics of webhooks
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/internal/certificate"
	commands "github.com/signalbox-dev/signalbox/internal/command"
	"github.com/signalbox-dev/signalbox/internal/deadline"
	"github.com/signalbox-dev/signalbox/internal/guard"
	"github.com/signalbox-dev/signalbox/internal/kueue"
	"github.com/signalbox-dev/signalbox/internal/policy"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/internal/ttl"
)

// Files of the alerts, their tests, and the dashboard.
const (
	alerts     = "files/alerts.yaml"
	alertTests = "testdata/alerts.test.yaml"
	dashboard  = "files/dashboard.json"
)

// ruleFile is a file of alerts, as Prometheus reads it.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string  `json:"name"`
	Rules []alert `json:"rules"`
}

type alert struct {
	Name        string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t *testing.T) ruleFile {
	t.Helper()
	var file ruleFile
	if err := yaml.UnmarshalStrict([]byte(read(t, alerts)), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAlerts has Prometheus's own tool check the alerts and run their unit tests, and checks that
// there is one of each.
func TestAlerts(t *testing.T) {
	tests, err := os.ReadFile(alertTests)
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, match := range regexp.MustCompile(`\{labels: 'ALERTS\{alertname="(\w+)"`).FindAllStringSubmatch(string(tests), -1) {
		tested[match[1]] = true
	}
	known := map[string]bool{}
	for _, group := range readAlerts(t).Groups {
		for _, rule := range group.Rules {
			known[rule.Name] = true
			got := slices.Sorted(maps.Keys(rule.Annotations))
			if diff := cmp.Diff([]string{"action", "description", "summary"}, got); diff != "" {
				t.Errorf("%s: annotations (-want +got):\n%s", rule.Name, diff)
			}
			if severity := rule.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
				t.Errorf("%s: severity %q", rule.Name, severity)
			}
		}
	}
	if diff := cmp.Diff(known, tested); diff != "" {
		t.Errorf("alerts, and those that a test has fire (-want +got):\n%s", diff)
	}
	// Without what finds targets, which takes the clients of all clouds.
	promtool := []string{"run", "-modfile=tools/promtool/go.mod", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}
	for _, args := range [][]string{{"check", "rules", chart + "/" + alerts}, {"test", "rules", "test/chart/" + alertTests}} {
		if output, err := command("go", append(slices.Clone(promtool), args...)...); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, output)
		}
	}
}

// TestPrometheusRule checks that the chart has the alerts of the file, but for those of features
// that are off.
func TestPrometheusRule(t *testing.T) {
	for name, tc := range map[string]struct {
		values  []string
		without []string
	}{
		"default values": {},
		"no snapshots":   {values: []string{"snapshots.enabled=false"}, without: []string{"signalbox-snapshots"}},
		"no policies":    {values: []string{"policies.enabled=false"}, without: []string{"signalbox-policies"}},
		"no TTL":         {values: []string{"ttl.enabled=false"}, without: []string{"signalbox-ttl"}},
		"no guard":       {values: []string{"runtimes.guard=false"}, without: []string{"signalbox-runtimes"}},
		"a certificate of its own": {
			values: ownCertificate, without: []string{"signalbox-certificate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := readAlerts(t)
			want.Groups = slices.DeleteFunc(want.Groups, func(group ruleGroup) bool { return slices.Contains(tc.without, group.Name) })
			objects := named[*unstructured.Unstructured](t, render(t, append([]string{"metrics.prometheusRule.enabled=true"}, tc.values...)...))
			text, err := json.Marshal(objects["signalbox"].Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			var got ruleFile
			if err := yaml.UnmarshalStrict(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules (-file +rendered):\n%s", diff)
			}
		})
	}
}

// board is what this looks at of a dashboard of Grafana.
type board struct {
	UID    string `json:"uid"`
	Title  string `json:"title"`
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestDashboard(t *testing.T) {
	config := named[*corev1.ConfigMap](t, render(t, "metrics.grafanaDashboard.enabled=true"))["signalbox-dashboard"]
	if config == nil {
		t.Fatal("there is no ConfigMap signalbox-dashboard")
	}
	if diff := cmp.Diff(map[string]string{"signalbox.json": read(t, dashboard)}, config.Data); diff != "" {
		t.Errorf("dashboard (-file +rendered):\n%s", diff)
	}
	shown := readDashboard(t)
	if shown.UID == "" || shown.Title == "" {
		t.Errorf("the dashboard has uid %q and title %q, want both", shown.UID, shown.Title)
	}
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, panel := range shown.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have id %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q lie over each other", other, panel.Title)
				}
				places[[2]int{x, y}] = panel.Title
			}
		}
	}
}

func readDashboard(t *testing.T) board {
	t.Helper()
	var shown board
	if err := json.Unmarshal([]byte(read(t, dashboard)), &shown); err != nil {
		t.Fatal(err)
	}
	return shown
}

// TestMetricsExist checks that alerts and dashboard ask for metrics that there are, and that the
// dashboard shows each that Signalbox has of its own.
func TestMetricsExist(t *testing.T) {
	exist, own := described(t)
	shown := map[string]bool{}
	check := func(where, expr string) {
		expr = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, "")
		for _, name := range regexp.MustCompile(`\b(signalbox|controller_runtime|leader_election|rest_client|workqueue|apiserver|go|process)_\w+`).FindAllString(expr, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			shown[name] = true
			if !exist[name] {
				t.Errorf("%s asks for %s, which there is not", where, name)
			}
		}
	}
	for _, group := range readAlerts(t).Groups {
		for _, rule := range group.Rules {
			check(rule.Name, rule.Expr)
		}
	}
	clear(shown)
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			check(panel.Title, target.Expr)
		}
	}
	for name := range own {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// described returns the names of the metrics of both commands and of what they and the API server
// are made of, and of those the ones that Signalbox has of its own.
func described(t *testing.T) (exist, own map[string]bool) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	_, deadlines := deadline.NewMetrics(registry, nil, nil)
	_, removals := ttl.NewMetrics(registry)
	_, seals := snapshot.NewAdmissionMetrics(registry)
	_, writes := snapshot.NewMetrics(registry)
	_, views := kueue.NewMetrics(registry)
	_, decisions := policy.NewMetrics(registry)
	_, clocks := guard.NewAuditMetric(registry)
	for _, err := range []error{
		deadlines, removals, seals, writes, views, decisions, clocks,
		commands.RegisterBuild(registry), certificate.RegisterExpiry(registry, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	own = names(registry)
	// The detector of Trainer registers its own in its manager.
	own["signalbox_trainer_capability"] = true
	exist = names(metrics.Registry.(prometheus.Collector))
	maps.Copy(exist, own)
	// The API server has no package that tells these.
	exist["apiserver_admission_webhook_rejection_count"] = true
	exist["apiserver_admission_webhook_fail_open_count"] = true
	return exist, own
}

func names(of prometheus.Collector) map[string]bool {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		of.Describe(descriptions)
		close(descriptions)
	}()
	found, name := map[string]bool{}, regexp.MustCompile(`fqName: "(\w+)"`)
	for description := range descriptions {
		found[name.FindStringSubmatch(description.String())[1]] = true
	}
	return found
}
