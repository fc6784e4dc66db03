package files

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
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

// Watch calls look at once, after events in the directory with event = true, and at every poll with
// false, until ctx ends. The path is clean (filepath.Clean) and need not exist yet. Watch calls
// answer for each value from requests. All calls come from the caller's goroutine; the only other
// goroutine, fsnotify's, ends before Watch returns.
func Watch(ctx context.Context, dir string, pace Pace, log *slog.Logger, look func(event bool), requests <-chan struct{}, answer func()) {
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

// watcher reports events in a directory. Where the system gives none, the poll finds the changes.
type watcher struct {
	dir    string
	log    *slog.Logger
	notify *fsnotify.Watcher // nil: no events
	// The watched directory. Meanwhile the path may lead to another one.
	watched os.FileInfo
}

// newWatcher returns a watcher that watches nothing yet; follow starts it.
func newWatcher(dir string, log *slog.Logger) *watcher {
	w := &watcher{dir: dir, log: log}
	var err error
	// The limit of inotify instances of a machine is small and shared; the agent must start even
	// without an instance.
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("no file events, changes are seen by polling only", "err", err)
	}
	return w
}

// close ends the goroutine of fsnotify.
func (w *watcher) close() {
	if w.notify != nil {
		if err := w.notify.Close(); err != nil {
			w.log.Debug("close file watcher", "err", err)
		}
	}
}

// events returns the channels of events and of errors; nil channels, which never deliver, if there
// are none.
func (w *watcher) events() (<-chan fsnotify.Event, <-chan error) {
	if w.notify == nil {
		return nil, nil
	}
	return w.notify.Events, w.notify.Errors
}

// follow makes sure that the directory at the path is watched. The directory may have been missing
// or replaced, and a watch belongs to a directory, not to a path. Callers call follow before every
// scan, so that no change is lost between the two.
func (w *watcher) follow() {
	if w.notify == nil {
		return
	}
	info, err := os.Stat(w.dir)
	if err != nil {
		return // the scan reports it
	}
	// inotify drops a watch when its directory is removed; the list of watches shows this.
	known := slices.Contains(w.notify.WatchList(), w.dir)
	if known && w.watched != nil && os.SameFile(info, w.watched) {
		return
	}
	if known {
		if err := w.notify.Remove(w.dir); err != nil {
			w.log.Debug("stop watching the old directory", "file", w.dir, "err", err)
		}
	}
	if err := w.notify.Add(w.dir); err != nil {
		w.log.Warn("no file events, changes are seen by polling only", "file", w.dir, "err", err)
		return
	}
	w.watched = info
}
