package run

import (
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// unlimited is the least number of bytes that means no limit: cgroup v1 has a very large number.
const unlimited = 1 << 50

// Percent by which the heap may exceed its live part before it is collected. While the agent starts
// it is Go's default: most allocations are garbage, and a collection for each quarter of the heap
// would take a third of the start. Afterwards there is little to collect.
const (
	growthAtStart = 100
	growth        = 25
	startTakes    = 15 * time.Second
)

// collectEarly bounds the garbage until stop is called. The garbage of the start is given back to
// the kernel when the start is over. GOGC overrides it.
func collectEarly() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(growthAtStart)
	started := time.AfterFunc(startTakes, func() {
		debug.SetGCPercent(growth)
		debug.FreeOSMemory()
	})
	return func() { started.Stop() }
}

// followContainer makes the garbage collector work harder near the memory limit of the container,
// so that the kernel does not kill the process. A tenth is left for memory that the collector does
// not know. GOMEMLIMIT overrides it.
func followContainer(log *slog.Logger) {
	// cgroup v2, v1
	limit := containerLimit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
	if limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	log.Info("garbage collector follows the memory limit of the container", "bytes", limit)
}

// containerLimit returns the limit in the first file that has one, in bytes; 0 = no limit.
func containerLimit(files ...string) int64 {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < unlimited {
			return limit // "max" is not a number
		}
	}
	return 0
}
