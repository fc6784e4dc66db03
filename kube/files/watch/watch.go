package watch

import (
	"context"
	"log/slog"
	"time"
)

// Pace holds the times after which events and polls lead to a look at the directory.
type Pace struct {
	// Quiet is the time without another event before the directory is read. Without it a
	// half-written file would be reported as broken for a moment.
	Quiet time.Duration
	Most  time.Duration // longest wait for the quiet time
	Poll  time.Duration // between looks without an event
}

// DefaultPace is the pace of the sources.
func DefaultPace() Pace {
	return Pace{Quiet: 50 * time.Millisecond, Most: time.Second, Poll: 10 * time.Second}
}

// wait returns how long to wait for the next event when the first one is this old.
func (p Pace) wait(age time.Duration) time.Duration { return max(0, min(p.Quiet, p.Most-age)) }

// Run calls look at once, after events in the directory with event = true, and at every poll with
// false, until ctx ends. The path is clean (filepath.Clean) and need not exist yet. Run calls
// answer for each value from requests. All calls come from the caller's goroutine; the only other
// goroutine, fsnotify's, ends before Run returns.
func Run(ctx context.Context, dir string, pace Pace, log *slog.Logger, look func(event bool), requests <-chan struct{}, answer func()) {
	w := newWatcher(dir, log)
	defer w.close()
	events, failures := w.events()
	poll := time.NewTicker(pace.Poll)
	defer poll.Stop()
	settled := time.NewTimer(0) // fires at once: the first look
	defer settled.Stop()
	var since time.Time // first event since the last look; zero = none
	for {
		select {
		case <-ctx.Done():
			return
		case <-requests:
			answer()
			continue
		case _, open := <-events:
			if !open {
				events = nil
				continue
			}
		case err, open := <-failures: // events were lost: look
			if !open {
				failures = nil
				continue
			}
			log.Warn("watching for file events failed", "file", dir, "err", err)
		case <-settled.C:
			since = time.Time{}
			w.follow()
			look(true)
			continue
		case <-poll.C:
			w.follow()
			look(false)
			continue
		}
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		settled.Reset(pace.wait(now.Sub(since)))
	}
}
