package api

import (
	"runtime"
	"runtime/debug"
)

// Build is the build information of this program.
type Build struct {
	// Version of the module: a tag, a pseudo-version, or "(devel)".
	Version string `json:"version"`
	// Revision of the source; "" if the build did not record it.
	Revision string `json:"revision,omitempty"`
	// Modified is true if the source had uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of the compiler.
	Go string `json:"go"`
	// Platform is operating system and architecture.
	Platform string `json:"platform"`
}

// ReadBuild reads the build information of this program.
func ReadBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the version. A version "(devel)" is followed by the start of the revision.
func (b Build) String() string {
	if b.Version != "(devel)" || b.Revision == "" {
		return b.Version
	}
	return b.Version + " " + b.Revision[:min(len(b.Revision), 12)]
}
