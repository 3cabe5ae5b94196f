// Package release_test builds a release as `make release` does and checks what is in it.
package release_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	sums = "SHA256SUMS"
)

var commands = []string{"webhook", "reconciler"}

// platforms are the OS/ARCH of the release that is tested: of PLATFORMS, or else this machine's,
// since building for another one takes minutes the first time.
func platforms() []string {
	return strings.Fields(cmp.Or(os.Getenv("PLATFORMS"), "linux/"+runtime.GOARCH))
}

// TestRelease builds a release twice: that takes seconds once Go's build cache has it.
func TestRelease(t *testing.T) {
	folder := t.TempDir()
	chart := chartOf(t, filepath.Join(root, "charts", "signalbox", "Chart.yaml"))
	makeRelease(t, folder)

	want := []string{sums, "signalbox-" + chart.Version + ".tgz", manifest}
	for _, platform := range platforms() {
		for _, command := range commands {
			file := binary(command, platform)
			want = append(want, file, file+".cdx.json")
			t.Run(file, func(t *testing.T) { checkBinary(t, filepath.Join(folder, file), command, platform, chart.AppVersion) })
			t.Run(file+".cdx.json", func(t *testing.T) { checkSBOM(t, filepath.Join(folder, file), chart.AppVersion) })
		}
	}
	for _, platform := range platforms() {
		file := archive(platform)
		want = append(want, file, pluginSBOM(platform))
		t.Run(file, func(t *testing.T) { checkPlugin(t, folder, platform, chart.AppVersion) })
	}
	t.Run(manifest, func(t *testing.T) { checkManifest(t, folder, chart.AppVersion) })
	slices.Sort(want)
	if diff := gocmp.Diff(want, names(t, folder)); diff != "" {
		t.Errorf("files of the release (-want +got):\n%s", diff)
	}
	t.Run("chart", func(t *testing.T) {
		if got := chartIn(t, filepath.Join(folder, "signalbox-"+chart.Version+".tgz")); got != chart {
			t.Errorf("the archive is of %+v, the chart of %+v", got, chart)
		}
	})

	first := readSums(t, folder)
	t.Run("sums", func(t *testing.T) {
		if diff := gocmp.Diff(computeSums(t, folder), first); diff != "" {
			t.Errorf("%s (-of the files +there):\n%s", sums, diff)
		}
	})
	t.Run("again", func(t *testing.T) {
		again := t.TempDir()
		// A file of a release before is in the way.
		stale := filepath.Join(again, "signalbox-0.0.1.tgz")
		if err := os.WriteFile(stale, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		makeRelease(t, again)
		if diff := gocmp.Diff(first, readSums(t, again)); diff != "" {
			t.Errorf("sums of the same sources (-first +second time):\n%s", diff)
		}
	})
}

func TestReleaseRefusesAVersionThatTheChartDoesNotInstall(t *testing.T) {
	folder := t.TempDir()
	output, err := runMake(folder, "VERSION=9.9.9")
	chart := chartOf(t, filepath.Join(root, "charts", "signalbox", "Chart.yaml"))
	if want := "VERSION is 9.9.9, but the chart's appVersion is " + chart.AppVersion; err == nil || !strings.Contains(output, want) {
		t.Errorf("make release: %v, %q; want an error that says %q", err, output, want)
	}
	if left := names(t, folder); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// runMake makes a release in a folder and returns what make printed.
func runMake(folder string, variables ...string) (string, error) {
	args := append([]string{"release", "RELEASE=" + folder, "PLATFORMS=" + strings.Join(platforms(), " ")}, variables...)
	cmd := exec.Command("make", args...)
	cmd.Dir = root
	// What a make that runs this test was told is not for this one.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "VERSION"}, name)
	})
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func makeRelease(t *testing.T, folder string) {
	t.Helper()
	if output, err := runMake(folder); err != nil {
		t.Fatalf("make release: %v\n%s", err, output)
	}
}

// binary returns the name of a command's file for a platform.
func binary(command, platform string) string {
	return "signalbox-" + command + "-" + strings.ReplaceAll(platform, "/", "-")
}

// checkBinary checks that the file runs on the platform without anything beside it, which an
// image from scratch does not have, and that it knows its version.
func checkBinary(t *testing.T, path, command, platform, version string) {
	checkProgram(t, path, command, platform, version, "--version")
}

// checkProgram checks that of a command that tells its version with this argument.
func checkProgram(t *testing.T, path, command, platform, version, argument string) {
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	if want := machines[platform]; file.Machine != want {
		t.Errorf("it is for the machine %s, want %s", file.Machine, want)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: it has %s", program.Type)
		}
	}
	if platform != runtime.GOOS+"/"+runtime.GOARCH {
		return
	}
	output, err := exec.Command(path, argument).CombinedOutput()
	if want := command + " " + version + " "; err != nil || !strings.HasPrefix(string(output), want) {
		t.Errorf("%s: %v, %q; want %q first", argument, err, output, want)
	}
}

// checkSBOM checks that the SBOM beside a binary is of this file and lists what it is made of.
func checkSBOM(t *testing.T, path, version string) {
	checkSBOMOf(t, path+".cdx.json", read(t, path), version)
}

// checkSBOMOf checks that the SBOM is of this program.
func checkSBOMOf(t *testing.T, path string, program []byte, version string) {
	var document struct {
		BOMFormat, SerialNumber string
		Metadata                struct {
			Timestamp  string
			Component  struct{ Name, Version string }
			Properties []struct{ Name, Value string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	data := read(t, path)
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if document.BOMFormat != "CycloneDX" {
		t.Errorf("its format is %q", document.BOMFormat)
	}
	if document.SerialNumber != "" || document.Metadata.Timestamp != "" {
		t.Errorf("it is different each time: serial number %q, time %q", document.SerialNumber, document.Metadata.Timestamp)
	}
	if got := document.Metadata.Component.Version; got != "v"+version {
		t.Errorf("it is of version %q, want v%s", got, version)
	}
	properties := map[string]string{}
	for _, property := range document.Metadata.Properties {
		properties[property.Name] = property.Value
	}
	if got, want := properties["cdx:gomod:binary:hash:SHA-256"], sum(program); got != want {
		t.Errorf("it is of a file with the sum %q, want %q", got, want)
	}
	components := map[string]string{}
	for _, component := range document.Components {
		components[component.Name] = component.Version
	}
	for name, want := range map[string]string{"k8s.io/client-go": required(t, "k8s.io/client-go"), "std": runtime.Version()} {
		if got := components[name]; got != want {
			t.Errorf("it lists %s %q, want %q", name, got, want)
		}
	}
}

// required returns the version at which the project requires a module.
func required(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = root
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// chartVersions are the versions that a Chart.yaml tells.
type chartVersions struct {
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}

func chartOf(t *testing.T, path string) chartVersions {
	t.Helper()
	return parseChart(t, read(t, path))
}

// chartIn returns the versions of the chart in an archive, which has its templates too.
func chartIn(t *testing.T, path string) chartVersions {
	t.Helper()
	files := unpack(t, path)
	for _, file := range []string{"values.yaml", "values.schema.json", "templates/webhook/deployment.yaml"} {
		if len(files["signalbox/"+file]) == 0 {
			t.Errorf("there is no %s among %q", file, slices.Sorted(maps.Keys(files)))
		}
	}
	return parseChart(t, files["signalbox/Chart.yaml"])
}

// unpack returns the files of an archive, by their names.
func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func parseChart(t *testing.T, data []byte) chartVersions {
	t.Helper()
	var chart chartVersions
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Version == "" || chart.AppVersion == "" {
		t.Fatalf("a version is missing from %q", data)
	}
	return chart
}

// names returns the names of a folder's files, sorted.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// readSums returns the sums that a release tells of its files, by their names.
func readSums(t *testing.T, folder string) map[string]string {
	t.Helper()
	told := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(folder, sums)))) {
		var of, file string
		if _, err := fmt.Sscanf(line, "%s %s\n", &of, &file); err != nil {
			t.Fatalf("%s: %q: %v", sums, line, err)
		}
		told[file] = of
	}
	return told
}

// computeSums returns the sums of a release's files but that of the sums.
func computeSums(t *testing.T, folder string) map[string]string {
	t.Helper()
	computed := map[string]string{}
	for _, file := range names(t, folder) {
		if file != sums {
			computed[file] = sum(read(t, filepath.Join(folder, file)))
		}
	}
	return computed
}

func sum(data []byte) string {
	of := sha256.Sum256(data)
	return hex.EncodeToString(of[:])
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
