package events

import (
	"context"
	"errors"
	"net/http"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// result is the result of writing a series.
type result struct {
	verdict verdict
	err     error
	pause   time.Duration // requested by the server; 0 = none
	// count at the API server now, whatever the verdict; 0 = none, or not known to this run
	known   int
	written int  // pending observations that were written
	adopted bool // the API server had the event, and nothing was written
}

// resultOf classifies the error of a request.
func resultOf(err error) result {
	v, pause := judge(err)
	return result{verdict: v, err: err, pause: pause}
}

// send writes a series: it creates the event, or raises the count of one that exists. A request
// without an answer may have been carried out. Every request can be repeated without counting
// twice, because counts are absolute.
func (w *Writer) send(ctx context.Context, s *series) result {
	if s.known == 0 {
		r := w.create(ctx, s, s.found+s.pending)
		switch {
		case r.verdict != exists:
			return r
		case s.pending == 0: // a Standing state that the API server has already
			return result{verdict: accepted, known: unknown, adopted: true}
		}
		s.known = unknown
	}
	written := 0
	if s.known == unknown {
		// An empty patch reads the event and changes nothing. It needs only the right to patch,
		// which the agent has anyway.
		e, r := w.patch(ctx, s, []byte("{}"))
		switch r.verdict {
		case accepted:
		case missing:
			return w.recreate(ctx, s, s.pending)
		default:
			return r
		}
		s.known = countOf(e)
		if e.EventTime.Truncate(time.Microsecond).Equal(s.first.Truncate(time.Microsecond)) {
			// This run created the event, but got no answer.
			written = s.known - s.found
			if s.pending == written {
				return result{verdict: accepted, known: s.known, written: written}
			}
		}
	}
	all := s.known + s.pending - written
	_, r := w.patch(ctx, s, seriesPatch(all, s.last))
	if r.verdict == missing { // its time to live has passed
		r = w.recreate(ctx, s, all)
	}
	if r.verdict == accepted {
		r.known, r.written = all, s.pending
	} else {
		r.known, r.written = s.known, written
	}
	return r
}

// countOf returns the number of observations that an event has counted.
func countOf(e *eventsv1.Event) int {
	if e.Series == nil {
		return 1
	}
	return int(e.Series.Count)
}

// create creates the event. A missing namespace is a refusal.
func (w *Writer) create(ctx context.Context, s *series, count int) result {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	e := s.object(w.instance, count)
	_, err := w.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	r := resultOf(err)
	switch r.verdict {
	case accepted:
		r.known, r.written = count, s.pending
	case missing:
		r.verdict = refused
	}
	return r
}

// recreate creates an event that was missing a moment ago. If it exists meanwhile, the next try
// finds it.
func (w *Writer) recreate(ctx context.Context, s *series, count int) result {
	r := w.create(ctx, s, count)
	if r.verdict == exists {
		r.verdict = later
	}
	return r
}

// patch changes the event of a series and returns the changed event.
func (w *Writer) patch(ctx context.Context, s *series, patch []byte) (*eventsv1.Event, result) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	name := objectName(&s.id, w.instance)
	e, err := w.client.Events(namespaceOf(&s.id.object)).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return e, resultOf(err)
}

// verdict is the meaning of an error of the API server for an event.
type verdict int

const (
	// accepted means that there was no error.
	accepted verdict = iota
	// exists means that there is an object of this name.
	exists
	// missing means that there is no such object, or no such namespace.
	missing
	// refused means that the server will never accept the event.
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
	case code == http.StatusNotFound:
		return missing, 0
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError, code == 0:
		return later, pause
	}
	return refused, 0
}
