package bootstrap

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestContainerLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.max")
	for text, want := range map[string]int64{
		"629145600\n": 629_145_600, "max\n": 0, "9223372036854771712\n": 0, "0\n": 0, "": 0,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := containerLimit(file+".missing", file); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestGarbageIsBounded(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for variable, want := range map[string]int{"300": 100, "": growth} {
		t.Setenv("GOGC", variable)
		debug.SetGCPercent(100)
		collectEarly()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("with GOGC=%q the heap grows by %d %%, want %d %%", variable, got, want)
		}
	}
}
