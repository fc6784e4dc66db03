// Package stats reads entries of the statistics segment of VPP (statseg in its startup.conf). VPP
// writes them into shared memory, so a reading costs its main thread only the hand-over of the
// memory. They are as old as VPP's update-interval at most, 10 s by default.
package stats

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

// Errors of this package, for errors.Is.
var (
	// ErrNone means that the statistics are not available: there is no socket, no server behind
	// it, or the segment lacks the entries.
	ErrNone = errors.New("no statistics of VPP")
	// ErrSilent means that VPP accepted a client of its statistics and did not answer, as it
	// does while its main thread is busy.
	ErrSilent = errors.New("VPP does not hand out its statistics")
)

// Source reads statistics at no cost for VPP; a Reader is one.
type Source[T any] interface {
	// Read returns when ctx ends, even if VPP hangs.
	Read(ctx context.Context) (T, error)
}

// Reader reads entries from the statistics segment of VPP. It connects for every read: memory that
// was mapped earlier keeps the numbers of a VPP that has ended. It may be used from any goroutine.
type Reader[T any] struct {
	socket, pattern string
	translate       func([]adapter.StatEntry) (T, error)
	mu              sync.Mutex
	over            chan struct{} // closed when the current read ends; nil = there was none
}

// NewReader returns a reader of the entries whose names match a regular expression, from the
// statistics socket at path. The function must not keep the entries: their names are in the memory
// of VPP.
func NewReader[T any](path, pattern string, translate func([]adapter.StatEntry) (T, error)) *Reader[T] {
	return &Reader[T]{socket: path, pattern: pattern, translate: translate}
}

// look is the result of one read.
type look[T any] struct {
	value T
	err   error
}

// Read reads the entries and translates them. It returns ErrSilent when ctx ends, even if VPP does
// not answer: GoVPP's client cannot be interrupted while it waits for the memory, so its goroutine
// stays until VPP answers or ends, and until then every Read returns ErrSilent at once. There is
// one read at a time. Other errors wrap ErrNone, or come from the translation.
func (r *Reader[T]) Read(ctx context.Context) (none T, err error) {
	if _, err := os.Stat(r.socket); errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("%w: %s does not exist", ErrNone, r.socket)
	}
	done, ok := r.start()
	if !ok {
		return none, fmt.Errorf("%w: %s", ErrSilent, r.socket)
	}
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %s", ErrSilent, r.socket)
	}
}

// start begins a read, unless one is in progress.
func (r *Reader[T]) start() (<-chan look[T], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		select {
		case <-r.over:
		default:
			return nil, false
		}
	}
	done, over := make(chan look[T], 1), make(chan struct{})
	r.over = over
	go func() {
		value, err := r.readSegment()
		close(over) // before the result: its receiver may start the next read
		done <- look[T]{value, err}
	}()
	return done, true
}

// readSegment connects, reads and disconnects.
func (r *Reader[T]) readSegment() (none T, err error) {
	client := statsclient.NewStatsClient(r.socket, statsclient.SetSocketRetryPeriod(time.Millisecond), statsclient.SetSocketRetryTimeout(time.Millisecond))
	if err := client.Connect(); err != nil {
		return none, fmt.Errorf("%w: connect to %s: %w", ErrNone, r.socket, err)
	}
	defer func() { _ = client.Disconnect() }()
	return r.readEntries(client)
}

// busyRetries bounds the repetitions of a read during which VPP changes its directory, as it does
// whenever an interface is added or deleted.
const busyRetries = 5

// readEntries reads the entries. Damaged memory becomes an error: GoVPP follows the pointers in it.
func (r *Reader[T]) readEntries(client adapter.StatsAPI) (value T, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if damage := recover(); damage != nil {
			var none T
			value, err = none, fmt.Errorf("%w: the segment is damaged: %v", ErrNone, damage)
		}
	}()
	var found []adapter.StatEntry
	for range busyRetries {
		if found, err = client.DumpStats(r.pattern); !errors.Is(err, adapter.ErrStatsDataBusy) {
			break
		}
	}
	if err != nil {
		return value, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return r.translate(found)
}
