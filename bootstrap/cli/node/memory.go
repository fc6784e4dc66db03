package node

import (
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
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

// paceInterval is how often a pace looks. More than so many seconds of CPU time for collections
// with growthAtRest between two looks mean that the agent works.
const (
	paceInterval = 15 * time.Second
	paceAtWork   = 1.5
)

// pace sets how early the garbage is collected.
type pace struct {
	spent   func() float64 // seconds of CPU time for collections since the start of the process
	seen    float64        // of them, at the last look
	working bool
	stopped atomic.Bool
}

// collectEarly bounds the garbage until stop is called. GOGC overrides it.
func collectEarly(spent func() float64) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(growthAtWork)
	p := &pace{spent: spent, seen: spent(), working: true}
	time.AfterFunc(paceInterval, p.look)
	return func() { p.stopped.Store(true) }
}

// look decides whether the agent works. At the end of the work the garbage is given back to the
// kernel.
func (p *pace) look() {
	if p.stopped.Load() {
		return
	}
	spent, most := p.spent()-p.seen, paceAtWork
	if p.working { // collections are rarer
		most *= float64(growthAtRest) / growthAtWork
	}
	switch working := spent > most; {
	case working && !p.working:
		debug.SetGCPercent(growthAtWork)
		p.working = true
	case !working && p.working:
		debug.SetGCPercent(growthAtRest)
		debug.FreeOSMemory()
		p.working = false
	}
	p.seen = p.spent()
	time.AfterFunc(paceInterval, p.look)
}

// collecting is the CPU time that collections have taken, in seconds.
func collecting() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
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
