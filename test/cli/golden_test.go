package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// same compares a text with the golden file testdata/NAME.txt, once what differs from run to run is out of
// it, see normal. Durations in keep, such as "8h", stay.
func (s *scene) same(name, text string, keep ...string) {
	s.Helper()
	text = s.normal(text, keep...)
	path := filepath.Join("testdata", name+".txt")
	if *update {
		s.must(os.MkdirAll("testdata", 0o755))
		s.must(os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	s.must(err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		s.Errorf("not as in %s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// What differs from run to run. Times keep their width.
var (
	uids      = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	revisions = regexp.MustCompile(`\b(?:sha256:)?[0-9a-f]{8,64}\b`)
	dateTimes = regexp.MustCompile(`\b20\d\d-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:\.\d+)?(Z?)`)
	minutes   = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d\b`)
	dates     = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
	clocks    = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)
	ports     = regexp.MustCompile(`\b127\.0\.0\.1:\d+`)
	// A style of a terminal, such as ESC[0m, is none.
	durations = regexp.MustCompile(`\x1b\[\d+m|\b(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?m?s)?\b`)
	workloads = regexp.MustCompile(`\b(trainjob-[a-z0-9-]+-)[0-9a-f]{5}\b`)
	podNames  = regexp.MustCompile(`\b([a-z0-9-]+-node-\d+-\d+-)[a-z0-9]{5}\b`)
	gaps      = regexp.MustCompile(`(\S) {2,}`)
)

// normal takes out of a text what differs from run to run: the scene's namespace, times, durations (ages
// and what is left), UIDs, revisions, ports, and what Kueue and the Job controller make up at the end of
// names. Gaps between columns, whose width goes by such texts, become two spaces.
func (s *scene) normal(text string, keep ...string) string {
	text = strings.ReplaceAll(text, s.namespace, "NAMESPACE")
	text = uids.ReplaceAllString(text, "UID")
	text = workloads.ReplaceAllString(text, "${1}XXXXX")
	text = podNames.ReplaceAllString(text, "${1}XXXXX")
	text = ports.ReplaceAllString(text, "127.0.0.1:PORT")
	text = dateTimes.ReplaceAllString(text, "YYYY-MM-DD${1}hh:mm:ss${2}")
	text = minutes.ReplaceAllString(text, "YYYY-MM-DD hh:mm")
	text = dates.ReplaceAllString(text, "YYYY-MM-DD")
	text = clocks.ReplaceAllString(text, "hh:mm:ss")
	text = revisions.ReplaceAllStringFunc(text, func(found string) string {
		// A number of that length is none.
		if strings.Trim(found, "0123456789") == "" {
			return found
		}
		return "REVISION"
	})
	text = durations.ReplaceAllStringFunc(text, func(found string) string {
		if found == "" || found[0] == '\x1b' || slices.Contains(keep, found) {
			return found
		}
		return "AGE"
	})
	return gaps.ReplaceAllString(text, "$1  ")
}
