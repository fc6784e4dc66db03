package config

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDefaultsAreDocumented pins the output of `troupe config defaults`: a changed default is a
// change of a public interface.
func TestDefaultsAreDocumented(t *testing.T) {
	golden(t, "defaults.yaml", Marshal(Defaults(), true))
}

// TestDefaultsAreValid reads the printed defaults back, with and without comments.
func TestDefaultsAreValid(t *testing.T) {
	for name, comments := range map[string]bool{"with comments": true, "without comments": false} {
		t.Run(name, func(t *testing.T) {
			doc, err := Load([]byte(Marshal(Defaults(), comments)), "defaults.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Defaults(), doc.Agent); diff != "" {
				t.Errorf("defaults changed by writing and reading (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefaultsAreIndependent guards against lists shared between configurations.
func TestDefaultsAreIndependent(t *testing.T) {
	one := Defaults()
	one.Services.NodePortAddresses[0] = "all"
	if got := Defaults().Services.NodePortAddresses[0]; got != "primary" {
		t.Errorf("default node port addresses = %q after another configuration was changed", got)
	}
}

// golden compares text with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if this is meant, run with -update:\n%s", path, diff)
	}
}
