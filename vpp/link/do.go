package link

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"
)

// Marks of a request that has no reply yet; they never leave the package, finish replaces them by
// ErrNotSent and ErrUnknown with the name of the message and the cause.
var (
	errUnsent     = errors.New("unsent")
	errUnanswered = errors.New("unanswered")
)

// Do implements Caller on this session.
func (s *session) Do(ctx context.Context, reqs []api.Message) ([]Result, error) {
	c := newCall(len(reqs))
	s.submitAll(ctx, c, reqs)
	s.wait(ctx, c)
	return s.finish(ctx, c, reqs)
}

// submitAll checks, encodes and submits the requests of a call, a job at a time, until all are
// submitted, the session is over or the caller has stopped waiting.
func (s *session) submitAll(ctx context.Context, c *call, reqs []api.Message) {
	items := make([]item, 0, min(len(reqs), jobSize))
	for i, req := range reqs {
		it, err := s.encode(req, i)
		if err != nil {
			c.results[i].Err = err
			continue
		}
		items = append(items, it)
		if len(items) < jobSize {
			continue
		}
		if !s.submit(ctx, job{call: c, items: items}) {
			return
		}
		items = make([]item, 0, min(len(reqs)-i-1, jobSize))
	}
	if len(items) > 0 {
		s.submit(ctx, job{call: c, items: items})
	}
}

// encode checks a single request and encodes it.
func (s *session) encode(req api.Message, index int) (item, error) {
	it, err := s.prepareItem(req, index)
	if err == nil && it.route.kind != kindReply {
		err = fmt.Errorf("%w: %s is answered by details, use Dump", ErrRefused, req.GetMessageName())
	}
	return it, err
}

// prepareItem checks and encodes a request of any kind.
func (s *session) prepareItem(req api.Message, index int) (item, error) {
	if req == nil || reflect.ValueOf(req).IsNil() {
		return item{}, fmt.Errorf("%w: nil message", ErrRefused)
	}
	if err := Check(req); err != nil {
		return item{}, err
	}
	r, err := s.route(req)
	if err != nil {
		return item{}, err
	}
	data, err := codec.EncodeMsg(req, r.id)
	if err != nil {
		return item{}, fmt.Errorf("%w: encode %s: %w", ErrRefused, r.name, err)
	}
	return item{route: r, data: data, room: s.cfg.room(req, len(data)), index: index}, nil
}

// submit hands a job to the sender; false means that the session is over or ctx is done.
func (s *session) submit(ctx context.Context, j job) bool {
	s.mu.Lock()
	j.call.left += len(j.items)
	s.mu.Unlock()
	select {
	case s.jobs <- j:
		return true
	case <-ctx.Done():
	case <-s.dead:
	}
	return false
}

// wait releases the caller's own count and waits until all requests are answered, ctx is done or
// the session is over.
func (s *session) wait(ctx context.Context, c *call) {
	s.mu.Lock()
	c.settle(1)
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-s.dead:
	}
}

// finish detaches the call from the session and completes the results of those requests that have
// none.
func (s *session) finish(ctx context.Context, c *call, reqs []api.Message) ([]Result, error) {
	s.mu.Lock()
	c.gone = true
	cause := s.cause
	s.mu.Unlock()
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	unsent := complete(c.results, reqs, cause)
	switch {
	case c.sent || !unsent:
		return c.results, nil
	case ctx.Err() != nil:
		return c.results, ctx.Err()
	default:
		return c.results, fmt.Errorf("%w: %w", ErrDown, cause)
	}
}

// complete replaces the marks of open requests and says whether some were not sent.
func complete(results []Result, reqs []api.Message, cause error) (unsent bool) {
	for i := range results {
		switch r := &results[i]; r.Err {
		case errUnsent:
			r.Err = fmt.Errorf("%w: %s: %w", ErrNotSent, name(reqs[i]), cause)
			unsent = true
		case errUnanswered:
			r.Err = fmt.Errorf("%w: %s: %w", ErrUnknown, name(reqs[i]), cause)
		}
	}
	return unsent
}
