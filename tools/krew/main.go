// Command krew packs the kubectl plugin of each platform into an archive, and writes the manifest by which
// krew, the plugin manager of kubectl, installs them. The same programs give the same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed signalbox.yaml.tmpl
var manifest string

// platform is a row of the manifest.
type platform struct {
	// OS and Arch are as Go calls them.
	OS, Arch string
	// Archive is the name of the archive, Sum its SHA-256 in hexadecimal digits.
	Archive, Sum string
	// Program is the name of the plugin in it.
	Program string
}

func main() {
	version := flag.String("version", "", "`VERSION` of the release, without v")
	license := flag.String("license", "LICENSE", "`FILE` that goes into each archive as LICENSE")
	out := flag.String("out", "", "`FOLDER` for the archives and the manifest")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: krew [flags] FOLDER, which has the plugin of each platform as OS-ARCH/kubectl-signalbox[.exe]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *license, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// run packs the plugins in a folder, and writes the manifest.
func run(folder, license, version, out string) error {
	text, err := os.ReadFile(license)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var platforms []platform
	for _, entry := range entries {
		p, err := packPlatform(filepath.Join(folder, entry.Name()), text, out)
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		platforms = append(platforms, p)
	}
	if len(platforms) == 0 {
		return errors.New("there is no plugin in " + folder)
	}
	var written bytes.Buffer
	if err := template.Must(template.New("").Parse(manifest)).Execute(&written, struct {
		Version   string
		Platforms []platform
	}{version, platforms}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "signalbox-krew.yaml"), written.Bytes(), 0o644)
}

// packPlatform writes the archive of the plugin in this folder, whose name is OS-ARCH.
func packPlatform(folder string, license []byte, out string) (platform, error) {
	system, arch, ok := strings.Cut(filepath.Base(folder), "-")
	if !ok {
		return platform{}, errors.New("its name is not OS-ARCH")
	}
	p := platform{OS: system, Arch: arch, Program: "kubectl-signalbox", Archive: fmt.Sprintf("signalbox-kubectl-%s-%s.tar.gz", system, arch)}
	pack := packTar
	if system == "windows" {
		p.Program += ".exe"
		p.Archive = strings.TrimSuffix(p.Archive, ".tar.gz") + ".zip"
		pack = packZip
	}
	program, err := os.ReadFile(filepath.Join(folder, p.Program))
	if err != nil {
		return platform{}, err
	}
	data, err := pack([]file{{"LICENSE", license, 0o644}, {p.Program, program, 0o755}})
	if err != nil {
		return platform{}, err
	}
	sum := sha256.Sum256(data)
	p.Sum = hex.EncodeToString(sum[:])
	return p, os.WriteFile(filepath.Join(out, p.Archive), data, 0o644)
}
