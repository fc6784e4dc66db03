package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// complaintInterval is the least time between two lines of the log that say the same.
const complaintInterval = time.Minute

// Writer is the Recorder that writes to the API server.
type Writer struct {
	client   kubernetes.Interface
	cfg      Config
	instance string
	log      *slog.Logger
	wake     chan struct{} // holds one signal that there is something new

	mu   sync.Mutex
	book *book

	// Below: only the goroutine of Run.
	backoff    wait.Backoff
	failing    bool
	complained time.Time
	lost       uint64 // that were complained of
}

var _ Recorder = (*Writer)(nil)

// New returns a recorder that writes through this client, when Run does; until then events wait. The client needs to create and patch events
// of the group events.k8s.io, nothing else.
func New(client kubernetes.Interface, cfg Config, log *slog.Logger) *Writer {
	cfg = cfg.withDefaults()
	w := &Writer{
		client: client, cfg: cfg, instance: instanceName(cfg.NodeName), log: log, wake: make(chan struct{}, 1), book: newBook(cfg, time.Now()),
	}
	w.resetBackoff()
	return w
}

// Record satisfies Recorder.
func (w *Writer) Record(e Event) {
	e.Note = trim(e.Note)
	w.mu.Lock()
	w.book.record(&e, time.Now())
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // Run has not woken from the last one yet
	}
}

// Stats returns what became of the events so far. Any goroutine may ask.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := w.book.stats
	stats.Waiting = w.book.queued
	return stats
}

// Run writes events until ctx ends, then returns nil. It is called once.
func (w *Writer) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		j, pause := w.next()
		if j != nil {
			w.write(ctx, j)
			continue
		}
		timer.Reset(min(pause, w.complain(time.Now())))
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
	return nil
}

// next returns what is to be written, or how long there is nothing.
func (w *Writer) next() (*job, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, pause := w.book.next(time.Now())
	if s == nil {
		return nil, pause
	}
	return s.job(), 0
}

// write sends one event and enters what became of it.
func (w *Writer) write(ctx context.Context, j *job) {
	r := w.send(ctx, j)
	if ctx.Err() != nil {
		return // the answer is that of the end
	}
	failed := r.verdict == later || r.verdict == silence
	var delay time.Duration
	if failed {
		delay = w.backoff.Step()
	} else {
		w.resetBackoff()
	}
	if failed && !w.failing {
		w.log.Warn("the API server takes no events, they wait", "object", j.id.object.String(), "reason", j.id.reason, "err", r.err)
	} else if !failed && w.failing {
		w.log.Info("the API server takes events again")
	}
	w.failing = failed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book.finish(j, &r, delay, time.Now())
}

func (w *Writer) resetBackoff() {
	w.backoff = wait.Backoff{Duration: w.cfg.BackoffMin, Factor: 2, Jitter: 0.5, Steps: 32, Cap: w.cfg.BackoffMax}
}

// complain logs that events were dropped, unless it has just done so. It returns when to look again.
func (w *Writer) complain(now time.Time) time.Duration {
	stats := w.Stats()
	if stats.Lost() == w.lost {
		return w.cfg.Window
	}
	if passed := now.Sub(w.complained); passed < complaintInterval {
		return complaintInterval - passed
	}
	w.log.Warn("events were dropped", "since_last", stats.Lost()-w.lost, "per_object_limit", stats.Limited, "queue_full", stats.Overflowed,
		"too_old", stats.Expired, "refused", stats.Refused, "gave_up", stats.Abandoned, "waiting", stats.Waiting, "err", stats.LastRefusal)
	w.lost, w.complained = stats.Lost(), now
	return w.cfg.Window
}
