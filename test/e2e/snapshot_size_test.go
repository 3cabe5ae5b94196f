package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/snapshot"
	"github.com/signalbox-dev/signalbox/test/cluster"
)

// largeJobSet is the JobSet spec of a runtime with this many bytes of environment, in values
// of this length. Random text is what compression can do little about.
func largeJobSet(image string, size, each int, random bool) string {
	var variables []map[string]string
	source := rand.New(rand.NewSource(1))
	for i := range size / each {
		value := strings.Repeat("x", each)
		if random {
			raw := make([]byte, each*3/4)
			_, _ = source.Read(raw)
			value = base64.StdEncoding.EncodeToString(raw)
		}
		variables = append(variables, map[string]string{"name": fmt.Sprintf("V%d", i), "value": value})
	}
	env, err := json.Marshal(variables)
	if err != nil {
		panic(err)
	}
	return strings.Replace(jobSetOf(image), `"image":`, `"env":`+string(env)+`,"image":`, 1)
}

// What the user is told of a TrainJob that is not sealed.
var (
	warnsOfRuntime     = regexp.MustCompile(`^the runtime is not sealed into this TrainJob: TrainingRuntime/train is \d{6} bytes compressed \(\d{6} in full\), more than 65536; the TrainJob runs on what Trainer keeps of it$`)
	warnsOfAnnotations = regexp.MustCompile(`^the runtime is not sealed into this TrainJob: the annotations of the TrainJob would be 20\d{4} bytes with the \d{3} of the snapshot, more than 196608; the TrainJob runs on what Trainer keeps of it$`)
	warnsOfTrainJob    = regexp.MustCompile(`^the runtime is not sealed into this TrainJob: the TrainJob would be 1[34]\d{5} bytes with the \d{3} of the snapshot, more than 1048576; the TrainJob runs on what Trainer keeps of it$`)
)

// lives creates a TrainJob, lets it run, suspends it, edits its runtime and resumes it: it
// runs the old content both times. On the cluster with Signalbox it is sealed if warning is
// nil, else the user is warned exactly so, once for each start.
func (s *scene) lives(warning *regexp.Regexp, changes ...change) {
	s.Helper()
	if s.cluster == stock {
		warning = nil // nobody is there to warn
	}
	warned := func(what string, want *regexp.Regexp, write func(client.Client) error) {
		s.Helper()
		got := s.warned(func(c client.Client) {
			err := write(c)
			// Built to find data races, the webhook is ten times slower: too slow, with 900 KB on
			// a busy machine, for the API server, which then ends the call, or sees its end.
			for apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to call webhook") && s.ctx.Err() == nil {
				err = write(c)
			}
			s.must(err)
		})
		// The API server tries a patch again, webhooks and all, when somebody else wrote in
		// between, and passes on all warnings.
		again := what != "created" && len(got) > 0 && want != nil
		for _, text := range got {
			again = again && want.MatchString(text)
		}
		if want == nil && len(got) > 0 || want != nil && !again && (len(got) != 1 || !want.MatchString(got[0])) {
			s.Errorf("%s: warnings %q, want %v", what, got, want)
		}
		for key := range s.get("job").Annotations {
			if warning != nil && strings.HasPrefix(key, v1alpha1.Group+"/runtime-") {
				s.Errorf("%s: not sealed, with the annotation %s", what, key)
			}
		}
	}
	suspend := func(to bool) func(client.Client) error {
		return func(c client.Client) error {
			return c.Patch(s.ctx, s.trainJob("job"), client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"suspend":%v}}`, to))))
		}
	}
	inOrder := func() {
		s.Helper()
		if s.cluster == stock {
			return
		}
		job := s.get("job")
		if warning == nil {
			s.inOrder(job, s.sealed(job))
			return
		}
		s.eventually("the filed snapshot", func() (bool, string) { return s.filed("job") != nil, "none" })
		filed, err := snapshot.FromObject(s.filed("job"))
		s.must(err)
		s.inOrder(job, filed)
	}
	s.known("train")
	warned("created", warning, func(c client.Client) error {
		return c.Create(s.ctx, s.trainJob("job", append([]change{onRuntime("train")}, changes...)...))
	})
	s.runs("job", oldImage)
	inOrder()
	s.settled("job")
	s.edit("train", newImage)
	warned("suspended", nil, suspend(true))
	s.noPods("job")
	warned("resumed", warning, suspend(false))
	s.runs("job", oldImage)
	inOrder()
	s.settled("job")
}

// Whatever size of runtime stock Trainer runs, runs with Signalbox: sealed where it compresses
// well, else on what Trainer keeps.
func TestSnapshotOfLargeRuntimes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		on      *cluster.Cluster
		size    int
		random  bool
		warning *regexp.Regexp
	}{
		"900 KB on stock":             {stock, 900_000, true, nil},
		"300 KB that compress":        {shared, 300_000, false, nil},
		"900 KB that compress":        {shared, 900_000, false, nil},
		"300 KB that do not compress": {shared, 300_000, true, warnsOfRuntime},
		"900 KB that do not compress": {shared, 900_000, true, warnsOfRuntime},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSceneOn(t, tc.on)
			s.runtime("train", largeJobSet(oldImage, tc.size, 100_000, tc.random))
			s.lives(tc.warning)
		})
	}
}

// Trainer keeps with the runtime what the API server notes of its fields. With many fields
// that is more than a ConfigMap takes, and stock cannot run the TrainJob. What Signalbox
// writes has none of it.
func TestSnapshotThatStockCannotKeep(t *testing.T) {
	t.Parallel()
	t.Run("stock does not run it", func(t *testing.T) {
		t.Parallel()
		s := newSceneOn(t, stock)
		s.runtime("train", largeJobSet(oldImage, 900_000, 1000, false))
		s.known("train")
		s.create("job", onRuntime("train"))
		s.eventually("an error of Trainer", func() (bool, string) {
			events := s.warnings("job")
			return strings.Contains(events, "Too long: may not be more than 1048576 bytes"), events
		})
	})
	t.Run("signalbox runs it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.runtime("train", largeJobSet(oldImage, 900_000, 1000, false))
		s.lives(nil)
	})
}

// A TrainJob that has no room for its snapshot is not refused for that: it runs as on stock.
func TestSnapshotOfLargeTrainJobs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  change
		warning *regexp.Regexp
	}{
		"1.4 MB of arguments": {func(job *unstructured.Unstructured) {
			var args []any
			for range 14 {
				args = append(args, strings.Repeat("x", 100_000))
			}
			set(args, "spec", "trainer", "args")(job)
		}, warnsOfTrainJob},
		"200 KB of annotations": {annotated("example.com/note", strings.Repeat("x", 200_000)), warnsOfAnnotations},
	} {
		t.Run(name, func(t *testing.T) {
			for on, c := range both() {
				t.Run(on, func(t *testing.T) {
					s := newSceneOn(t, c)
					s.runtime("train", jobSetOf(oldImage))
					s.lives(tc.warning, tc.change)
				})
			}
		})
	}
}
