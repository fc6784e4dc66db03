package events

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// dropsInterval is the least time between two log lines about dropped events.
const dropsInterval = time.Minute

// Stats counts the events of a Writer.
type Stats struct {
	// Recorded counts calls of Record; Repeated counts the calls among them with a remembered
	// event.
	Recorded, Repeated uint64
	// Written counts events that the API server accepted. Adopted counts events that
	// it had already, from an earlier run or another node.
	Written, Adopted uint64
	// Limited, Overflowed, Expired and Refused count dropped events: too many of one object, more
	// than MostEvents, not written within Window, and refused by the API server for good.
	Limited, Overflowed, Expired, Refused uint64
	// Waiting is the number of events to be written.
	Waiting int
}

// Lost returns the number of dropped events, for all reasons.
func (s Stats) Lost() uint64 { return s.Limited + s.Overflowed + s.Expired + s.Refused }

// Writer is the Recorder that writes to the API server.
type Writer struct {
	client   *apiserver.Client
	cfg      Config
	instance string
	log      *slog.Logger
	wake     chan struct{} // holds one signal that there is a new event
	requests flowcontrol.RateLimiter

	mu     sync.Mutex
	events *aggregator

	// Below: only the goroutine of Run.
	backoff wait.Backoff
	failing bool
	logged  time.Time // last line about drops
	dropped uint64    // drops in that line
}

var _ Recorder = (*Writer)(nil)

// New returns a recorder whose Run writes through this client; before Run, events wait. The client
// needs the right to create events of the group events.k8s.io, and no other right.
func New(client *apiserver.Client, cfg Config, log *slog.Logger) *Writer {
	cfg = cfg.withDefaults()
	return &Writer{
		client: client, cfg: cfg, instance: instanceName(cfg.NodeName), log: log, wake: make(chan struct{}, 1), events: newAggregator(cfg),
		requests: flowcontrol.NewTokenBucketRateLimiter(float32(1/cfg.Interval.Seconds()), cfg.Burst), backoff: cfg.backoff(),
	}
}

// Record satisfies Recorder.
func (w *Writer) Record(e Event) {
	e.Note = trim(e.Note)
	w.mu.Lock()
	w.events.record(&e, time.Now())
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// Stats returns the counts so far. Any goroutine may ask.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := w.events.stats
	stats.Waiting = len(w.events.queue)
	return stats
}

// Run writes events until ctx ends, then returns nil. It is called once.
func (w *Writer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s, pause := w.next()
		if s == nil {
			w.sleep(ctx, min(pause, w.logDrops(time.Now())), w.wake)
			continue
		}
		if w.requests.Wait(ctx) != nil {
			break // the end
		}
		if s, _ = w.next(); s != nil { // s with the observations made during the wait
			w.sleep(ctx, w.write(ctx, s), nil)
		}
	}
	return nil
}

// sleep waits for a time, a signal or the end.
func (w *Writer) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(d):
	}
}

// next returns the event to be written, or the time until one is due.
func (w *Writer) next() (*known, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events.next(time.Now())
}

// write writes one event and returns for how long the API server should get no further request.
func (w *Writer) write(ctx context.Context, s *known) (pause time.Duration) {
	r := w.send(ctx, s)
	if ctx.Err() != nil {
		return 0 // the error comes from the end of the context
	}
	failed := r.verdict == later
	switch {
	case failed:
		pause = max(w.backoff.Step(), r.pause)
	default:
		w.backoff = w.cfg.backoff()
	}
	if failed && !w.failing {
		w.log.Warn("the API server takes no events, they wait", "object", s.id.Object.String(), "reason", s.id.Reason, "err", r.err)
	} else if !failed && w.failing {
		w.log.Info("the API server takes events again")
	}
	w.failing = failed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events.finish(s, &r, time.Now())
	return pause
}

// logDrops logs dropped events at most once a minute. It returns the time of the next look.
func (w *Writer) logDrops(now time.Time) time.Duration {
	stats := w.Stats()
	if stats.Lost() == w.dropped {
		return w.cfg.Window
	}
	if passed := now.Sub(w.logged); passed < dropsInterval {
		return dropsInterval - passed
	}
	w.mu.Lock()
	refusal := w.events.refusal
	w.mu.Unlock()
	w.log.Warn("events were dropped", "since_last", stats.Lost()-w.dropped, "per_object_limit", stats.Limited, "queue_full", stats.Overflowed,
		"too_old", stats.Expired, "refused", stats.Refused, "waiting", stats.Waiting, "err", refusal)
	w.dropped, w.logged = stats.Lost(), now
	return w.cfg.Window
}

// Log is the Recorder of an agent without an API server: it writes a line to the log.
type Log struct {
	log *slog.Logger
}

var _ Recorder = Log{}

// NewLog returns a recorder that only logs.
func NewLog(log *slog.Logger) Log { return Log{log} }

// Record satisfies Recorder. It logs standing states as well, because no API server has them from
// an earlier run.
func (l Log) Record(e Event) {
	level := slog.LevelInfo
	if e.Type == Warning {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "event", "object", e.Object.String(), "reason", e.Reason, "action", e.Action, "note", e.Note)
}

// Config of a Writer. The zero value of a field means its default, except for NodeName.
type Config struct {
	// NodeName is the name of this node: "troupe-<name>" is the reporting instance. Required.
	NodeName string
	// Interval and Burst bound the requests to the API server: one per Interval, and up to Burst at
	// once after a quiet time. Default 1 s and 25.
	Interval time.Duration
	Burst    int
	// ObjectInterval and ObjectBurst bound the different events about one object. ObjectInterval is
	// also the least time between two writes of the same event. Default 5 min and 10.
	ObjectInterval time.Duration
	ObjectBurst    int
	// Window is the time for which an event is remembered after its last observation, and the
	// largest age at which it is written. It should equal the time to live of events in the API
	// server (--event-ttl). Default 1 h.
	Window time.Duration
	// MostEvents bounds the number of remembered events, those that wait to be written included.
	// Default 1000.
	MostEvents int
	// Timeout bounds one request. Default 10 s.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the delay while the API server accepts no events; it doubles.
	// Default 1 s and 1 min.
	BackoffMin, BackoffMax time.Duration
}

// withDefaults returns the configuration with every zero field replaced.
func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Burst = cmp.Or(c.Burst, 25)
	c.ObjectInterval = cmp.Or(c.ObjectInterval, 5*time.Minute)
	c.ObjectBurst = cmp.Or(c.ObjectBurst, 10)
	c.Window = cmp.Or(c.Window, time.Hour)
	c.MostEvents = cmp.Or(c.MostEvents, 1000)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.BackoffMin = cmp.Or(c.BackoffMin, time.Second)
	c.BackoffMax = cmp.Or(c.BackoffMax, time.Minute)
	return c
}

// backoff returns the delays of a new outage.
func (c *Config) backoff() wait.Backoff {
	return wait.Backoff{Duration: c.BackoffMin, Factor: 2, Jitter: 0.5, Steps: 32, Cap: c.BackoffMax}
}

// result is the result of writing an event.
type result struct {
	verdict verdict
	err     error
	pause   time.Duration // requested by the server; 0 = none
}

// send creates an event. A request without an answer may have been carried out; it can be repeated,
// because the event has the same name again.
func (w *Writer) send(ctx context.Context, k *known) result {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	e := k.object(w.instance)
	_, err := w.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	v, pause := judge(err)
	return result{v, err, pause}
}

// verdict is the meaning of an error of the API server for an event.
type verdict int

const (
	// accepted means that there was no error.
	accepted verdict = iota
	// exists means that there is an object of this name.
	exists
	// refused means that the server will never accept the event, for example because its namespace
	// is gone.
	refused
	// later means that the server cannot accept the event now, or did not answer. It may have
	// carried out the request.
	later
)

// judge classifies an error, and returns the pause that the server asks for; 0 = none.
func judge(err error) (verdict, time.Duration) {
	if err == nil {
		return accepted, 0
	}
	var construction *rest.RequestConstructionError
	if errors.As(err, &construction) {
		return refused, 0
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return later, 0
	}
	var pause time.Duration
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = time.Duration(seconds) * time.Second
	}
	switch code := status.Status().Code; {
	case apierrors.IsAlreadyExists(err):
		return exists, 0
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError, code == 0:
		return later, pause
	}
	return refused, 0
}
