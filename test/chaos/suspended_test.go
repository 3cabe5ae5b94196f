package chaos_test

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

var (
	suspendedJobs = flag.Int("chaos.suspended", 60, "how many TrainJobs wait suspended")
	quietFor      = flag.Duration("chaos.quiet", 20*time.Second, "how long nobody may look at them")
)

// Many TrainJobs that wait suspended, long past what would be their deadlines, cost nothing:
// once they have settled, the reconciler looks at none of them.
func TestDeadlineSuspendedInNumbers(t *testing.T) {
	works(t)
	namespace := newNamespace(t)
	for i := range *suspendedJobs {
		if err := shared.Client.Create(t.Context(), manifest(namespace, fmt.Sprint("job-", i), 1, false, true)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := newWatcher(namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	for settled := 0; settled < *suspendedJobs; pause(t.Context(), time.Second) {
		var list trainer.TrainJobList
		if err := w.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		settled = 0
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) > 0 {
				settled++
			}
			if list.Items[i].Terminal() {
				t.Fatalf("TrainJob %s: %s", list.Items[i].Name, summary(&list.Items[i]))
			}
		}
	}
	last, since := looks(t), time.Now()
	for end := time.Now().Add(*quietFor + patience); time.Since(since) < *quietFor; pause(t.Context(), 500*time.Millisecond) {
		if now := looks(t); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(end) {
			t.Fatalf("the reconciler still looked %s ago", time.Since(since))
		}
	}
}

// looks is how often the reconciler has looked at a TrainJob.
func looks(t *testing.T) float64 {
	t.Helper()
	response, err := http.Get(shared.Reconciler.MetricsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	sum := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if !strings.HasPrefix(name, `controller_runtime_reconcile_total{controller="deadline"`) {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	return sum
}
