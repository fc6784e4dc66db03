package watch

import (
	"log/slog"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"
)

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
