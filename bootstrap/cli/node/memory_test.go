package node

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
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

// TestGarbageIsBounded: garbage is collected late while the agent works, early at rest.
func TestGarbageIsBounded(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	intervals := []struct {
		spent  time.Duration // in milliseconds
		growth int
	}{{400, growthAtWork}, {300, growthAtRest}, {1400, growthAtRest}, {1600, growthAtWork}, {0, growthAtRest}}
	for variable, want := range map[string]func(growth int) int{
		"300": func(int) int { return 100 }, // as it was
		"":    func(growth int) int { return growth },
	} {
		t.Setenv("GOGC", variable)
		debug.SetGCPercent(100)
		synctest.Test(t, func(t *testing.T) {
			var spent atomic.Int64
			defer collectEarly(func() float64 { return time.Duration(spent.Load()).Seconds() })()
			growth := growthAtWork
			for i, of := range intervals {
				got := debug.SetGCPercent(100)
				if debug.SetGCPercent(got); got != want(growth) {
					t.Errorf("GOGC=%q, before interval %d: the heap grows by %d %%, want %d %%", variable, i, got, want(growth))
				}
				spent.Add(int64(of.spent * time.Millisecond))
				growth = of.growth
				time.Sleep(paceInterval)
				synctest.Wait()
			}
		})
	}
}
