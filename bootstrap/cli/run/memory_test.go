package run

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
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
	for _, test := range []struct {
		variable      string
		atStart, then int
	}{{"300", 100, 100}, {"", growthAtStart, growth}} {
		t.Setenv("GOGC", test.variable)
		synctest.Test(t, func(t *testing.T) {
			defer collectEarly()()
			atStart := debug.SetGCPercent(100)
			time.Sleep(startTakes + time.Second)
			if then := debug.SetGCPercent(100); atStart != test.atStart || then != test.then {
				t.Errorf("with GOGC=%q the heap grows by %d %%, then by %d %%, want %d %% and %d %%", test.variable, atStart, then, test.atStart, test.then)
			}
		})
	}
}
