package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Limits of a trace. It is for interactive use and must cost the agent little.
const (
	traceInterval = 200 * time.Millisecond // between two queries of the journal
	traceHistory  = 200                    // number of past events, unless the request has ?after=
	traceMost     = 10000                  // events after which the trace ends
	// limit of one listener, so that clients on TCP cannot block the control socket
	tracesAtOnce = 8
	// interval of comments without events, by which both ends detect a lost connection
	heartbeat = 5 * time.Second
)

// traceQuery selects the events of a trace.
type traceQuery struct {
	api.EventQuery
	follow bool
}

func parseTrace(r *http.Request) (traceQuery, error) {
	q := traceQuery{follow: true}
	values, err := parameters(r.URL.RawQuery, "kind", "object", "cause", "after", "limit", "follow")
	if err != nil {
		return q, err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && values["after"] == "" {
		// a browser that reconnects
		values["after"] = id
	}
	if q.EventQuery, err = eventsOf(values); err != nil {
		return q, err
	}
	q.Limit = traceMost
	if text, given := values["limit"]; given {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > traceMost {
			return q, fmt.Errorf("%w: limit %q is not a number from 1 to %d", errQuery, text, traceMost)
		}
	}
	if text, given := values["follow"]; given {
		if q.follow, err = strconv.ParseBool(text); err != nil {
			return q, fmt.Errorf("%w: follow %q is neither true nor false", errQuery, text)
		}
	}
	return q, nil
}

// numberOf reads the number of an event or of a cause; 0 = absent.
func numberOf(values map[string]string, name string) (uint64, error) {
	text, given := values[name]
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q is not a number", errQuery, name, text)
	}
	return n, nil
}

// traces is the handler of the traces of one listener.
func (s *Server) traces(control bool) http.HandlerFunc {
	active := make(chan struct{}, tracesAtOnce) // holds a token for each trace
	text := fmt.Sprintf("too many traces at the same time on this listener, the limit is %d: end another one", tracesAtOnce)
	if !control {
		text += ", or use the control socket"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := parseTrace(r)
		if err != nil {
			respond(w, nil, err)
			return
		}
		select {
		case active <- struct{}{}:
			defer func() { <-active }()
		default:
			s.refuse(w, http.StatusServiceUnavailable, Refusal{listenerName(control), RefusedTraces, PeerOf(r.Context()), text})
			return
		}
		s.trace(w, r, q)
	}
}

// trace streams the journal as server-sent events: past events, then new ones, until the client
// disconnects, the server stops, or the limit is reached.
func (s *Server) trace(w http.ResponseWriter, r *http.Request, q traceQuery) {
	first, older, err := q.News(r.Context(), s.backend.Events, traceHistory)
	if err != nil {
		respond(w, nil, err)
		return
	}
	t := &tracer{Server: s, stream: http.NewResponseController(w), w: w, query: q}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if older && r.URL.Query().Has("after") {
		first = append([]api.Event{leftOut(traceHistory)}, first...)
	}
	if t.tell(first) && q.follow {
		t.follow(r.Context())
	}
}

// leftOut is an event that stands for the events above the limit of a trace. The journal does not
// have it, so it has no number.
func leftOut(most int) api.Event {
	return api.Event{Time: time.Now(), Kind: "trace", Text: fmt.Sprintf("earlier events are left out: a trace shows at most %d at once; troupe events has them", most)}
}

// tracer is one trace.
type tracer struct {
	*Server
	stream *http.ResponseController
	w      http.ResponseWriter
	query  traceQuery
	told   int
}

// tell sends events and reports whether the trace continues.
func (t *tracer) tell(events []api.Event) (more bool) {
	for i := range events {
		text, err := json.Marshal(&events[i])
		if err != nil {
			return false
		}
		id := ""
		if events[i].Seq != 0 {
			id = fmt.Sprintf("id: %d\n", events[i].Seq)
		}
		if t.write("%sevent: journal\ndata: %s\n\n", id, text) != nil {
			return false
		}
		if t.told++; t.told == t.query.Limit {
			return false // the end of the handler flushes the rest
		}
	}
	return t.stream.Flush() == nil
}

// write sends data with the write timeout of other requests, because a trace has no deadline.
func (t *tracer) write(format string, args ...any) error {
	if err := t.stream.SetWriteDeadline(time.Now().Add(t.cfg.Timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

// follow sends new events. It retries while the journal does not answer, because its supervisor
// restarts it.
func (t *tracer) follow(ctx context.Context) {
	look := time.NewTicker(traceInterval)
	defer look.Stop()
	spoke := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.ending.Done():
			return
		case <-look.C:
		}
		events, older, err := t.query.News(ctx, t.backend.Events, api.MaxLimit)
		if older {
			events = append([]api.Event{leftOut(api.MaxLimit)}, events...)
		}
		switch {
		case err != nil || len(events) == 0:
			if time.Since(spoke) < heartbeat {
				continue
			}
			if t.write(": \n\n") != nil || t.stream.Flush() != nil {
				return
			}
		case !t.tell(events):
			return
		}
		spoke = time.Now()
	}
}
