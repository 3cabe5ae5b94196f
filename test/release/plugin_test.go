package release_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// manifest is by what krew installs the plugin.
const manifest = "signalbox-krew.yaml"

const plugin = "kubectl-signalbox"

// archive and pluginSBOM return the names of the plugin's files for a platform of Linux.
func archive(platform string) string {
	return "signalbox-kubectl-" + strings.ReplaceAll(platform, "/", "-") + ".tar.gz"
}

func pluginSBOM(platform string) string {
	return "signalbox-kubectl-" + strings.ReplaceAll(platform, "/", "-") + ".cdx.json"
}

// checkPlugin checks what is in the archive of the plugin, and the SBOM beside it.
func checkPlugin(t *testing.T, folder, platform, version string) {
	files := unpack(t, filepath.Join(folder, archive(platform)))
	if diff := gocmp.Diff([]string{"LICENSE", plugin}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), plugin)
	if err := os.WriteFile(path, files[plugin], 0o700); err != nil {
		t.Fatal(err)
	}
	checkProgram(t, path, plugin, platform, version, "version")
	checkSBOMOf(t, filepath.Join(folder, pluginSBOM(platform)), files[plugin], version)
}

// checkManifest checks that the manifest names the archives of the release with their sums.
func checkManifest(t *testing.T, folder, version string) {
	var document struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(folder, manifest)), &document); err != nil {
		t.Fatal(err)
	}
	if document.Metadata.Name != "signalbox" || document.Spec.Version != "v"+version {
		t.Errorf("it is of %s %s, want signalbox v%s", document.Metadata.Name, document.Spec.Version, version)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, row := range document.Spec.Platforms {
		platform := row.Selector.MatchLabels["os"] + "/" + row.Selector.MatchLabels["arch"]
		got[platform] = row.URI + " " + row.SHA256 + " " + row.Bin
	}
	for _, platform := range platforms() {
		file := archive(platform)
		uri := "https://github.com/signalbox-dev/signalbox/releases/download/v" + version + "/" + file
		want[platform] = uri + " " + sum(read(t, filepath.Join(folder, file))) + " " + plugin
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}
