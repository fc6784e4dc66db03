package run

import (
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// unlimited is the least number of bytes that means no limit: cgroup v1 has a very large number.
const unlimited = 1 << 50

// Percent by which the heap may exceed its live part before it is collected. While the agent works,
// as at its start, it is Go's default: most allocations are garbage, and four times as many
// collections would take a third of the CPU time. At rest there is little to collect.
const (
	growthAtWork = 100
	growthAtRest = 25
)

// paceInterval is how often a pace looks. Between two looks, so many collections with growthAtRest,
// one a second, mean that the agent works.
const (
	paceInterval = 15 * time.Second
	paceAtWork   = 15
)

// pace sets how early the garbage is collected.
type pace struct {
	timer       *time.Timer
	collections func() uint64 // since the start of the process
	seen        uint64        // of them, at the last look
	working     bool
}

// collectEarly bounds the garbage until stop is called. GOGC overrides it.
func collectEarly(collections func() uint64) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(growthAtWork)
	p := &pace{collections: collections, seen: collections(), working: true}
	p.timer = time.AfterFunc(paceInterval, p.look)
	return func() { p.timer.Stop() }
}

// look decides whether the agent works. At the end of the work the garbage is given back to the
// kernel.
func (p *pace) look() {
	now := p.collections()
	made, most := now-p.seen, uint64(paceAtWork)
	p.seen = now
	if p.working {
		most = most * growthAtRest / growthAtWork
	}
	switch working := made > most; {
	case working && !p.working:
		debug.SetGCPercent(growthAtWork)
		p.working = true
	case !working && p.working:
		debug.SetGCPercent(growthAtRest)
		debug.FreeOSMemory()
		p.working = false
	}
	p.timer.Reset(paceInterval)
}

// automaticCollections counts the collections that were not asked for.
func automaticCollections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
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
