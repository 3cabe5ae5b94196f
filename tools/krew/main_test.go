package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// plugins makes a folder with a program for each of these platforms, and returns it and a license.
func plugins(t *testing.T, platforms ...string) (folder, license string) {
	t.Helper()
	folder, license = t.TempDir(), filepath.Join(t.TempDir(), "license")
	for _, name := range platforms {
		path := filepath.Join(folder, name, "kubectl-signalbox")
		if strings.HasPrefix(name, "windows") {
			path += ".exe"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("program of "+name), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(license, []byte("license"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, license
}

func TestManifestIsOfTheArchives(t *testing.T) {
	folder, license := plugins(t, "linux-amd64", "windows-arm64")
	out := t.TempDir()
	if err := run(folder, license, "1.2.3", out); err != nil {
		t.Fatal(err)
	}
	data := read(t, filepath.Join(out, "signalbox-krew.yaml"))
	var got struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []any
		}
	}
	if err := yaml.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if got.Kind != "Plugin" || got.Metadata.Name != "signalbox" || got.Spec.Version != "v1.2.3" {
		t.Errorf("it is of %+v", got)
	}
	row := func(system, arch, archive, program string) any {
		sum := sha256.Sum256(read(t, filepath.Join(out, archive)))
		return map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": system, "arch": arch}},
			"uri":      "https://github.com/signalbox-dev/signalbox/releases/download/v1.2.3/" + archive,
			"sha256":   hex.EncodeToString(sum[:]),
			"bin":      program,
		}
	}
	want := []any{
		row("linux", "amd64", "signalbox-kubectl-linux-amd64.tar.gz", "kubectl-signalbox"),
		row("windows", "arm64", "signalbox-kubectl-windows-arm64.zip", "kubectl-signalbox.exe"),
	}
	if diff := cmp.Diff(want, got.Spec.Platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestArchives(t *testing.T) {
	folder, license := plugins(t, "darwin-arm64", "windows-amd64")
	first, again := t.TempDir(), t.TempDir()
	for _, out := range []string{first, again} {
		if err := run(folder, license, "1.2.3", out); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		unpack  func(*testing.T, []byte) map[string]string
		program string
		of      string
	}{
		"signalbox-kubectl-darwin-arm64.tar.gz": {untar, "kubectl-signalbox", "darwin-arm64"},
		"signalbox-kubectl-windows-amd64.zip":   {unzip, "kubectl-signalbox.exe", "windows-amd64"},
	} {
		t.Run(name, func(t *testing.T) {
			data := read(t, filepath.Join(first, name))
			want := map[string]string{"LICENSE 0644": "license", tc.program + " 0755": "program of " + tc.of}
			if diff := cmp.Diff(want, tc.unpack(t, data)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if !bytes.Equal(data, read(t, filepath.Join(again, name))) {
				t.Error("it is another the second time")
			}
		})
	}
}

func TestWhatIsNotThere(t *testing.T) {
	empty, license := plugins(t)
	odd, _ := plugins(t, "linux")
	for name, tc := range map[string]struct{ folder, license, want string }{
		"no plugin":           {empty, license, "there is no plugin in"},
		"a folder of no name": {odd, license, "linux: its name is not OS-ARCH"},
		"no license":          {empty, filepath.Join(empty, "license"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(tc.folder, tc.license, "1.2.3", t.TempDir()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// untar and unzip return the files of an archive by their names and modes.
func untar(t *testing.T, data []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name+" "+mode(header.FileInfo())] = string(data)
	}
}

func unzip(t *testing.T, data []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name+" "+mode(f.FileInfo())] = string(data)
	}
	return files
}

func mode(info os.FileInfo) string { return fmt.Sprintf("%04o", info.Mode().Perm()) }
