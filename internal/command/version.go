package command

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// release is the version of a release, which its build sets; "" in any other build.
var release string

// Build tells what a command was built from.
type Build struct {
	// Version is that of the release, or else what the Go toolchain makes of the sources' tags.
	Version string
	// Revision is the commit of the sources, with "+dirty" where they were changed since; ""
	// where the build does not know.
	Revision string
	// Go is the version of the toolchain.
	Go string
}

// ThisBuild tells what this command was built from.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: cmp.Or(release, "unknown")}
	}
	return buildOf(info, release)
}

func buildOf(info *debug.BuildInfo, release string) Build {
	build := Build{Version: cmp.Or(release, info.Main.Version, "unknown"), Go: info.GoVersion}
	dirty := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			build.Revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "+dirty"
		}
	}
	if build.Revision != "" {
		build.Revision += dirty
	}
	return build
}

// String is the build in one line.
func (b Build) String() string {
	text := b.Version
	if b.Revision != "" {
		text += " (" + b.Revision + ")"
	}
	return fmt.Sprint(text, " ", b.Go)
}

// RegisterBuild registers the metric that tells what the command was built from.
func RegisterBuild(registry prometheus.Registerer) error {
	build := ThisBuild()
	metric := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "signalbox_build_info",
		Help: "1, with what this command was built from.",
	}, []string{"version", "revision", "go_version"})
	metric.WithLabelValues(build.Version, build.Revision, build.Go).Set(1)
	return registry.Register(metric)
}
