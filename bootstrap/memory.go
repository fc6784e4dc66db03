package bootstrap

import (
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// unlimited is the least number of bytes that stands for no limit: cgroup v1 has a very large one
// then.
const unlimited = 1 << 50

// By how many percent the heap may exceed what is alive before it is collected. The default of Go
// is 100. At the start most of what is allocated is garbage, and collecting more often would delay
// it; afterwards there is little to collect.
const (
	growthAtStart = 35
	growth        = 25
	startTakes    = 15 * time.Second
)

// collectEarly bounds the garbage until stop is called. GOGC, where it is set, has the last word.
func collectEarly() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(growthAtStart)
	started := time.AfterFunc(startTakes, func() { debug.SetGCPercent(growth) })
	return func() { started.Stop() }
}

// followContainer has the garbage collector work harder when the process comes near to the memory
// limit of its container, instead of letting the kernel kill it. A tenth is left for what the
// collector does not know. GOMEMLIMIT, where it is set, has the last word.
func followContainer(log *slog.Logger) {
	// cgroup v2, v1
	limit := containerLimit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
	if limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	log.Info("garbage collector follows the memory limit of the container", "bytes", limit)
}

// containerLimit returns the limit in the first file that has one, in bytes; 0 = none has.
func containerLimit(files ...string) int64 {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < unlimited {
			// "max" is no number
			return limit
		}
	}
	return 0
}
