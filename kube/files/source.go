package files

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Source delivers the objects in the files of a directory to the agent of one node. It is a
// kube.Source.
type Source struct {
	dir   string
	node  string
	log   *slog.Logger
	pace  Pace
	store *kube.Store

	asked   atomic.Bool   // for a snapshot
	refresh chan struct{} // holds one request, for a snapshot or a look

	// Below: only the goroutine of Run.
	sink     kube.Sink
	read     *directory
	listed   bool // the first Snapshot was delivered
	healthy  health
	problems []*messages.ObjectError // of the last scan, to log each once
}

// health is a report to the sink.
type health struct {
	known, ok bool
	reason    string
}

var _ kube.Source = (*Source)(nil)

// New returns a source that reads the files of dir for the node of this name. The directory need
// not exist yet: until it can be read, the source only reports bad health. log gets one line for
// each problem in the files.
func New(dir, nodeName string, log *slog.Logger) *Source {
	dir = filepath.Clean(dir) // as the watcher of fsnotify names it
	return &Source{
		dir: dir, node: nodeName, log: log,
		pace:    DefaultPace(),
		store:   kube.NewStore(nodeName),
		refresh: make(chan struct{}, 1),
		read:    &directory{path: dir, files: map[string]*file{}, settle: settle},
	}
}

// Remember hands over the objects that an earlier run has read in this directory; it must be called
// before Run. An object that cannot be read or decoded at the start keeps this value. If a broken
// file does not even name its objects, every remembered object that occurs in no other file keeps
// its value. Other missing objects are gone.
func (s *Source) Remember(objects *normalize.Objects) { s.read.earlier = objects }

// Refresh satisfies kube.Source.
func (s *Source) Refresh() {
	s.asked.Store(true)
	s.request()
}

// request makes the goroutine of Run call answer.
func (s *Source) request() {
	select {
	case s.refresh <- struct{}{}:
	default: // one is pending already
	}
}

// Run satisfies kube.Source. It never fails: a directory that cannot be read is bad health.
func (s *Source) Run(ctx context.Context, sink kube.Sink) error {
	s.sink = sink
	Watch(ctx, s.dir, s.pace, s.log, s.look, s.refresh, s.answer)
	return nil
}

// look reads the directory and delivers what changed.
func (s *Source) look(force bool) {
	now, err := s.read.scan(force)
	if err != nil {
		s.health(false, err.Error())
		return
	}
	s.logNew(now.problems)
	if !now.unchanged {
		// The Store finds the differences: the source needs no diff of files, and one changed
		// object is one change.
		s.store.Replace(now.objects.Select(s.node), now.problems)
		changes := s.store.Commit()
		if s.listed {
			changes.Deliver(s.sink)
		}
	}
	if !s.listed {
		s.listed = true
		s.snapshot()
	}
	if now.again > 0 {
		time.AfterFunc(now.again, s.request)
	}
	// A file that cannot be read may hide changes, so the health is bad. A file that cannot be
	// decoded is a warning.
	switch {
	case now.unreadable != "":
		s.health(false, now.unreadable)
	case len(now.problems) > 0:
		s.health(true, warning(now.problems))
	default:
		s.health(true, "")
	}
}

// answer delivers a snapshot that was asked for, or looks at files that have settled.
func (s *Source) answer() {
	if s.asked.Swap(false) {
		s.snapshot()
		return
	}
	s.look(true)
}

// snapshot delivers everything, once there is anything to deliver.
func (s *Source) snapshot() {
	if s.listed {
		s.sink.Snapshot(s.store.Snapshot())
	}
}

// health reports to the sink, if the report differs from the last one.
func (s *Source) health(ok bool, reason string) {
	if now := (health{known: true, ok: ok, reason: reason}); now != s.healthy {
		s.healthy = now
		s.sink.Health(kube.Health{OK: ok, Reason: reason})
	}
}

// logNew logs the problems that the last scan did not have.
func (s *Source) logNew(problems []*messages.ObjectError) {
	old := map[string]bool{}
	for _, p := range s.problems {
		old[text(p)] = true
	}
	for _, p := range problems {
		if !old[text(p)] {
			s.log.Warn("object not usable", "file", p.GetSource(), "kind", p.GetKind(), "object", p.GetObject(),
				"field", p.GetField(), "err", p.GetMessage())
		}
	}
	s.problems = problems
}

// warning returns the first problem and the number of the others.
func warning(problems []*messages.ObjectError) string {
	if others := len(problems) - 1; others > 0 {
		return fmt.Sprintf("%s (and %d more)", text(problems[0]), others)
	}
	return text(problems[0])
}

// text returns a problem in one line.
func text(p *messages.ObjectError) string {
	out := p.GetSource()
	for _, part := range []string{p.GetKind(), p.GetObject(), p.GetField()} {
		if part != "" {
			out += " " + part
		}
	}
	return out + ": " + p.GetMessage()
}
