package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
)

// Names of the entries of the statistics segment.
const (
	entryTotal = "/nat44-ed/total-sessions"   // by thread
	entryBase  = "/nat44-ed/max-cfg-sessions" // set when the plugin is enabled
	entries    = "^/nat44-ed/(total-sessions|max-cfg-sessions)$"
)

// Reader reads the usage from the statistics segment of VPP. It connects for every read: memory
// that was mapped earlier keeps the numbers of a VPP that has ended.
type Reader struct {
	socket string
	mu     sync.Mutex
	over   chan struct{} // closed when the current read ends; nil = there was none
}

// NewReader returns a reader of the statistics socket at path (statseg in VPP's startup.conf).
func NewReader(path string) *Reader { return &Reader{socket: path} }

// look is the result of one read.
type look struct {
	usage Usage
	err   error
}

// Read reads the usage. It returns ErrSilent when ctx ends, even if VPP does not answer: GoVPP's
// client cannot be interrupted while it waits for the memory, so its goroutine stays until VPP
// answers or ends, and until then every Read returns ErrSilent at once. There is one read at a
// time. With ErrNoLimit it returns the sessions alone. Other errors wrap ErrNoStats.
func (r *Reader) Read(ctx context.Context) (Usage, error) {
	if _, err := os.Stat(r.socket); errors.Is(err, fs.ErrNotExist) {
		return Usage{}, fmt.Errorf("%w: %s does not exist", ErrNoStats, r.socket)
	}
	done, ok := r.start()
	if !ok {
		return Usage{}, fmt.Errorf("%w: %s", ErrSilent, r.socket)
	}
	select {
	case got := <-done:
		return got.usage, got.err
	case <-ctx.Done():
		return Usage{}, fmt.Errorf("%w: %s", ErrSilent, r.socket)
	}
}

// start begins a read, unless one is in progress.
func (r *Reader) start() (<-chan look, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		select {
		case <-r.over:
		default:
			return nil, false
		}
	}
	done, over := make(chan look, 1), make(chan struct{})
	r.over = over
	go func() {
		usage, err := readSegment(r.socket)
		close(over) // before the result: its receiver may start the next read
		done <- look{usage, err}
	}()
	return done, true
}

// readSegment connects, reads and disconnects.
func readSegment(socket string) (usage Usage, err error) {
	client := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryPeriod(time.Millisecond), statsclient.SetSocketRetryTimeout(time.Millisecond))
	if err := client.Connect(); err != nil {
		return Usage{}, fmt.Errorf("%w: connect to %s: %w", ErrNoStats, socket, err)
	}
	defer func() { _ = client.Disconnect() }()
	return readEntries(client)
}

// busyRetries bounds the repetitions of a read during which VPP changes its directory, as it does
// whenever an interface is added or deleted.
const busyRetries = 5

// readEntries reads the two entries. Damaged memory becomes an error: GoVPP follows the pointers in
// it.
func readEntries(client adapter.StatsAPI) (usage Usage, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			usage, err = Usage{}, fmt.Errorf("%w: the segment is damaged: %v", ErrNoStats, r)
		}
	}()
	var found []adapter.StatEntry
	for range busyRetries {
		if found, err = client.DumpStats(entries); !errors.Is(err, adapter.ErrStatsDataBusy) {
			break
		}
	}
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrNoStats, err)
	}
	return usageOf(found)
}

// usageOf translates the entries.
func usageOf(found []adapter.StatEntry) (usage Usage, err error) {
	var total, base, unread bool
	for _, e := range found {
		switch data := e.Data.(type) {
		case adapter.SimpleCounterStat:
			if string(e.Name) == entryTotal {
				total = true
				usage.add(data)
			}
		case adapter.ScalarStat:
			if string(e.Name) == entryBase && data >= 0 && data < 1<<32 {
				base = true
				usage.Base = uint32(data)
			}
		case nil:
			unread = unread || string(e.Name) == entryBase
		}
	}
	if total && unread {
		return usage, ErrNoLimit
	}
	if !total || !base {
		return Usage{}, fmt.Errorf("%w: no sessions of NAT44-ED in the segment: is the NAT plugin loaded?", ErrNoStats)
	}
	if usage.Base == 0 { // never enabled
		return Usage{}, nil
	}
	usage.Enabled = true
	return usage, nil
}

// add counts the sessions of each thread; index 0 is the only one.
func (u *Usage) add(threads adapter.SimpleCounterStat) {
	for _, counters := range threads {
		if len(counters) > 0 {
			n := uint64(counters[0])
			u.Busiest, u.Total = max(u.Busiest, n), u.Total+n
		}
	}
}
