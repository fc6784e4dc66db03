package informers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Pauses between two requests of an agent to an API server that does not answer: random, so that
// the agents of a cluster do not ask at the same moment.
const (
	leastPause = time.Second
	mostPause  = 3 * time.Second
)

// health collects the state of the watches, and holds back requests while the API server does not
// answer. Reflectors set it; the worker takes the changes.
type health struct {
	wake func()

	mu       sync.Mutex
	starting map[string]bool    // resources that are not watched and have no trouble, by name
	troubles map[string]trouble // why resources are not watched, by name
	away     trouble            // why the API server answers no resource
	answers  chan struct{}      // closed when it answers again; nil = it answers
	pending  []verdict          // not taken yet, oldest first
	last     verdict
}

// verdict is a report for Sink.Health.
type verdict struct {
	ok     bool
	reason string
	causes string // reason without details, so that the log sees only new causes
}

// maxPending bounds the verdicts that wait for the worker. Short outages are reported too, but not
// every outage of a long series.
const maxPending = 8

// newHealth returns the health of resources that are not watched yet.
func newHealth(wake func(), plurals []string) *health {
	h := &health{wake: wake, starting: map[string]bool{}, troubles: map[string]trouble{}}
	for _, name := range plurals {
		h.starting[name] = true
	}
	return h
}

// set notes that a resource is watched (the zero trouble), or the trouble that prevents its watch.
func (h *health) set(resource string, t trouble) {
	h.change(func() {
		delete(h.starting, resource)
		h.troubles[resource] = t
		if t == (trouble{}) {
			delete(h.troubles, resource)
		}
	})
}

// pass asks until the API server answers, and returns its answer. While it does not answer, or
// refuses the credentials, one request is repeated and the others wait. So no reflector sees an
// error and backs off: each is current again soon after the API server is back, even after a long
// outage. The name is that of a required resource, or "".
func (h *health) pass(ctx context.Context, resource string, ask func() error) error {
	repeats := false
	defer func() {
		if repeats { // also if ctx ends: another request can try
			h.change(func() {
				close(h.answers)
				h.answers, h.away = nil, trouble{}
			})
		}
	}()
	for {
		var answers <-chan struct{}
		h.change(func() {
			if answers = h.answers; answers != nil {
				h.waits(resource)
			}
		})
		var again <-chan time.Time
		if repeats {
			answers, again = nil, time.After(leastPause+rand.N(mostPause-leastPause))
		}
		if answers != nil || again != nil {
			select {
			case <-answers:
				continue
			case <-again:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := ask()
		if !unanswered(err) || ctx.Err() != nil {
			return err
		}
		h.change(func() {
			if h.answers == nil {
				h.answers, repeats = make(chan struct{}), true
			}
			if repeats {
				h.away = diagnose(err)
			}
			h.waits(resource)
		})
	}
}

// waits notes that a resource waits for the API server; the lock is held.
func (h *health) waits(resource string) {
	delete(h.troubles, resource)
	if resource != "" {
		h.starting[resource] = true
	}
}

// unanswered reports whether a request failed for a reason that concerns all resources.
func unanswered(err error) bool { return err != nil && diagnose(err).general() }

// change changes the state, and wakes the worker if there is something to take.
func (h *health) change(do func()) {
	if h.changed(do) {
		h.wake()
	}
}

// changed is change without the wake-up.
func (h *health) changed(do func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
	// A source that starts is neither healthy nor unhealthy until each kind has been watched or
	// has failed.
	if len(h.troubles) == 0 && len(h.starting) > 0 && h.away == (trouble{}) {
		return false
	}
	now := h.verdict()
	if now == h.last {
		return false
	}
	h.last = now
	// The last verdict always gets a place, because it stays true.
	if len(h.pending) == maxPending {
		h.pending = h.pending[:maxPending-1]
	}
	h.pending = append(h.pending, now)
	return true
}

// verdict joins the troubles. A trouble of all resources appears once, so that the verdict stays
// the same while single resources lose and regain their watches. Missing permissions are joined
// into one text as well. The lock must be held.
func (h *health) verdict() verdict {
	var texts, causes, denied []string
	var why trouble
	say := func(cause cause, text string) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if cause != expired && !slices.Contains(causes, string(cause)) {
			causes = append(causes, string(cause))
		}
	}
	if h.away != (trouble{}) && len(h.starting) > 0 {
		say(h.away.cause, h.away.String(""))
	}
	for _, name := range slices.Sorted(maps.Keys(h.troubles)) {
		switch t := h.troubles[name]; t.cause {
		case forbidden:
			denied, why = append(denied, name), t
		default:
			say(t.cause, t.String(name))
		}
	}
	if len(denied) > 0 {
		say(forbidden, why.String(strings.Join(denied, ", ")))
	}
	return verdict{ok: len(texts) == 0, reason: strings.Join(texts, "; "), causes: strings.Join(causes, "; ")}
}

// take returns the verdicts since the last call.
func (h *health) take() []verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.pending
	h.pending = nil
	return out
}

// state returns the current verdict.
func (h *health) state() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// settle is the time after which an outage is logged: by then every resource has noticed it.
const settle = time.Second

// settleAnew is the time after which an outage with a new cause is logged again. Watches that only
// expire are logged after the same time. An API server that starts refuses many requests for a
// moment.
const settleAnew = 10 * time.Second

// outageLog logs an outage once when it begins and once when it ends, whatever the number of
// resources, requests and error texts. Only a new cause gives another line.
type outageLog struct {
	log    *slog.Logger
	timer  *time.Timer
	since  time.Time       // begin of the outage; zero = there is none
	logged map[string]bool // causes that are in the log
	armed  bool            // timer runs
	well   bool            // "watching the API server" has been logged
}

// begin starts without an outage.
func (o *outageLog) begin(log *slog.Logger) {
	o.log, o.logged, o.timer = log, map[string]bool{}, time.NewTimer(settle)
	o.timer.Stop()
}

// reported takes a verdict that differs from the last one.
func (o *outageLog) reported(v verdict) {
	switch {
	case !v.ok && o.since.IsZero():
		o.since, o.armed = time.Now(), true
		o.timer.Reset(settle)
	case !v.ok && o.news(v) && !o.armed:
		o.armed = true
		o.timer.Reset(settleAnew)
	case v.ok && len(o.logged) > 0:
		o.log.Info("watching the API server again", "outage", time.Since(o.since).Round(time.Second))
	case v.ok && !o.well:
		o.log.Info("watching the API server")
	}
	if v.ok {
		o.timer.Stop()
		o.since, o.armed, o.well = time.Time{}, false, true
		clear(o.logged)
	}
}

// lasts logs an outage that has lasted since the timer was set.
func (o *outageLog) lasts(v verdict) {
	o.armed = false
	if !v.ok && v.causes == string(expired) && time.Since(o.since) < settleAnew {
		o.armed = true
		o.timer.Reset(settle)
		return
	}
	if !v.ok && (len(o.logged) == 0 || o.news(v)) {
		o.logged[v.causes] = true
		o.log.Warn("not watching the API server", "err", v.reason)
	}
}

// news reports whether a logged outage has a cause that is not in the log.
func (o *outageLog) news(v verdict) bool {
	return len(o.logged) > 0 && v.causes != string(expired) && !o.logged[v.causes]
}

// cause is the reason why a resource is not watched. All causes except the last three concern all
// resources at the same time.
type cause string

// Causes, in their order in a verdict.
const (
	silent       cause = "the API server does not answer"
	untrusted    cause = "the certificate of the API server is not trusted: check the certificate authority in the kubeconfig or of the service account"
	rejected     cause = "the API server refuses the TLS connection: check the client certificate"
	unauthorized cause = "the API server refuses the credentials (401 Unauthorized): check the token or the client certificate"
	forbidden    cause = "no permission to list and watch " // the resources follow
	other        cause = "other"
	// The list that follows an expired watch takes a moment, or is part of an outage.
	expired cause = ""
)

// trouble says why one resource is not watched. The zero value means that it is watched.
type trouble struct {
	cause cause
	text  string // error of the API server or of the connection, without URLs
}

// general reports whether the trouble concerns all resources.
func (t trouble) general() bool {
	return t.cause != forbidden && t.cause != other && t.cause != expired
}

// diagnose returns the trouble that explains the error of a request.
func diagnose(err error) trouble {
	if err == nil {
		return trouble{}
	}
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) {
		text = request.Err.Error()
	}
	if connection := (*net.OpError)(nil); errors.As(err, &connection) && connection.Source != nil {
		without := *connection
		without.Source = nil // the local port differs each time
		text = strings.ReplaceAll(text, connection.Error(), without.Error())
	}
	var status apierrors.APIStatus
	var certificate *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &certificate):
		return trouble{untrusted, text}
	case errors.As(err, &alert) && alert.Op == "remote error":
		// crypto/tls marks an alert of the server so; net/http wraps it in one of several texts.
		return trouble{rejected, alert.Error()}
	case apierrors.IsUnauthorized(err):
		return trouble{unauthorized, text}
	case apierrors.IsForbidden(err):
		return trouble{forbidden, text}
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return trouble{expired, "the watch expired (410 Gone), listing again: " + text}
	case apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err):
		return trouble{silent, text}
	case errors.As(err, &status):
		return trouble{other, text}
	default:
		return trouble{silent, text}
	}
}

// String describes the trouble of resources that all have it.
func (t trouble) String(resources string) string {
	switch {
	case t.cause == other || t.cause == expired:
		return resources + ": " + t.text
	case t.cause == forbidden:
		return fmt.Sprintf("%s%s: bind the ClusterRole of the agent to its service account (%s)", forbidden, resources, t.text)
	case t.cause == unauthorized:
		return string(unauthorized)
	default:
		return fmt.Sprintf("%s: %s", t.cause, t.text)
	}
}
