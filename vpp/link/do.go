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

// Do implements Caller on this connection.
func (conn *connection) Do(ctx context.Context, reqs []api.Message) ([]Result, error) {
	c := newCall(len(reqs))
	conn.submitAll(ctx, c, reqs)
	conn.wait(ctx, c)
	return conn.finish(ctx, c, reqs)
}

// submitAll checks, encodes and submits the requests of a call, a job at a time, until all are
// submitted, the connection is over or the caller has stopped waiting.
func (conn *connection) submitAll(ctx context.Context, c *call, reqs []api.Message) {
	items := make([]item, 0, min(len(reqs), jobSize))
	for i, req := range reqs {
		it, err := conn.encode(req, i)
		if err != nil {
			c.results[i].Err = err
			continue
		}
		items = append(items, it)
		if len(items) < jobSize {
			continue
		}
		if !conn.submit(ctx, job{call: c, items: items}) {
			return
		}
		items = make([]item, 0, min(len(reqs)-i-1, jobSize))
	}
	if len(items) > 0 {
		conn.submit(ctx, job{call: c, items: items})
	}
}

// encode checks a single request and encodes it.
func (conn *connection) encode(req api.Message, index int) (item, error) {
	it, err := conn.prepareItem(req, index)
	if err == nil && it.route.kind != kindReply {
		err = fmt.Errorf("%w: %s is answered by details, use Dump", ErrRefused, req.GetMessageName())
	}
	return it, err
}

// prepareItem checks and encodes a request of any kind.
func (conn *connection) prepareItem(req api.Message, index int) (item, error) {
	if req == nil || reflect.ValueOf(req).IsNil() {
		return item{}, fmt.Errorf("%w: nil message", ErrRefused)
	}
	if err := Check(req); err != nil {
		return item{}, err
	}
	r, err := conn.route(req)
	if err != nil {
		return item{}, err
	}
	data, err := codec.EncodeMsg(req, r.id)
	if err != nil {
		return item{}, fmt.Errorf("%w: encode %s: %w", ErrRefused, r.name, err)
	}
	return item{route: r, data: data, room: conn.cfg.room(req, len(data)), index: index}, nil
}

// submit hands a job to the sender; false means that the connection is over or ctx is done.
func (conn *connection) submit(ctx context.Context, j job) bool {
	conn.mu.Lock()
	j.call.left += len(j.items)
	conn.mu.Unlock()
	select {
	case conn.jobs <- j:
		return true
	case <-ctx.Done():
	case <-conn.dead:
	}
	return false
}

// wait releases the caller's own count and waits until all requests are answered, ctx is done or
// the connection is over.
func (conn *connection) wait(ctx context.Context, c *call) {
	conn.mu.Lock()
	c.settle(1)
	conn.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-conn.dead:
	}
}

// finish detaches the call from the connection and completes the results of requests that have
// none.
func (conn *connection) finish(ctx context.Context, c *call, reqs []api.Message) ([]Result, error) {
	conn.mu.Lock()
	c.gone = true
	cause := conn.cause
	conn.mu.Unlock()
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
