package bootstrap

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the output of `troupe version`.
type version struct {
	// Version of the module: a tag, a pseudo-version, or "(devel)".
	Version string `json:"version"`
	// Revision of the source; "" where the build did not record it.
	Revision string `json:"revision,omitempty"`
	// Modified is true if the source had uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Go is the version of the compiler.
	Go string `json:"go"`
	// Platform is operating system and architecture.
	Platform string `json:"platform"`
}

// newVersionCommand returns `troupe version`.
func newVersionCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs}
	out := addFormat(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := readVersion()
		return out.print(io.out, v, func(c *columns) {
			c.row("troupe", v.Version, v.Revision, v.Go, v.Platform)
		})
	}
	return cmd
}

// readVersion reads the build information of the binary.
func readVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
