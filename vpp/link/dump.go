package link

import (
	"context"
	"fmt"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// Dump implements Caller on this connection.
func (conn *connection) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	it, err := conn.prepareItem(req, 0)
	if err != nil {
		return err
	}
	var details []api.Message
	switch it.route.kind {
	case kindDump:
		details, err = conn.dump(ctx, req, it)
	case kindCursor:
		details, err = conn.pages(ctx, req)
	case kindReply:
		err = fmt.Errorf("%w: %s is answered by one reply, use Do", ErrRefused, it.route.name)
	}
	if err != nil {
		return err
	}
	for _, d := range details {
		each(d)
	}
	return nil
}

// dump sends a dump request and the control_ping whose reply says that the details are complete:
// VPP answers in order.
func (conn *connection) dump(ctx context.Context, req api.Message, it item) ([]api.Message, error) {
	ping := item{route: conn.ping, data: append([]byte(nil), conn.pingFrame...), room: conn.cfg.room(nil, len(conn.pingFrame)), index: 1, ends: true}
	c := newCall(2)
	conn.submit(ctx, job{call: c, items: []item{it, ping}, together: true})
	conn.wait(ctx, c)
	results, err := conn.finish(ctx, c, []api.Message{req, &memclnt.ControlPing{}})
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", it.route.name, err)
	}
	if err := results[1].Err; err != nil {
		return nil, fmt.Errorf("dump %s: %w", it.route.name, err)
	}
	return c.details, nil
}

// Return values of vnet/error.h that paging depends on.
const (
	retvalInvalidValue = -7
	retvalAgain        = -165
)

// pages follows a cursor. Only retval 0 is the end: with an empty set VPP's cursor is uninitialised
// memory. The limit of a dump holds for all its pages together.
func (conn *connection) pages(ctx context.Context, req api.Message) ([]api.Message, error) {
	var all []api.Message
	seen := map[uint32]bool{cursorOf(req): true}
	bytes, began := 0, time.Now()
	for first := true; ; first = false {
		c, reply, err := conn.page(ctx, req)
		code, known := Retval(err)
		if !known {
			return nil, err
		}
		all = append(all, c.details...)
		bytes += c.bytes
		if err := conn.tooLarge(req.GetMessageName(), len(all), bytes); err != nil {
			return nil, conn.broken(req, err)
		}
		switch {
		case code == 0:
			return all, nil
		case code == retvalInvalidValue && first && len(all) == 0:
			// VPP's macro for pools returns this when the pool is empty
			// (REPLY_AND_DETAILS_MACRO in api_helper_macros.h).
			return nil, nil
		case code != retvalAgain:
			return nil, err
		}
		next := cursorOf(reply)
		if err := conn.endless(req.GetMessageName(), began, seen, next); err != nil {
			return nil, conn.broken(req, err)
		}
		seen[next] = true
		req = withCursor(req, next)
	}
}

// broken ends the connection because of the answers to a dump, and returns the error of the dump.
func (conn *connection) broken(req api.Message, cause error) error {
	conn.fail(cause)
	return fmt.Errorf("dump %s: %w: %w", req.GetMessageName(), ErrUnknown, cause)
}

// endless returns an error when the pages of a dump so far show that it is no use to read the next
// one.
func (conn *connection) endless(name string, began time.Time, seen map[uint32]bool, next uint32) error {
	switch {
	case seen[next]:
		return fmt.Errorf("%w: %s: cursor %d repeats", ErrProtocol, name, next)
	case time.Since(began) >= conn.cfg.DumpTimeout:
		return fmt.Errorf("%w: %s is not complete after %s", ErrTimeout, name, conn.cfg.DumpTimeout)
	case len(seen) >= conn.cfg.MaxDumpDetails:
		return fmt.Errorf("%w: %s: more than %d pages", ErrTooLarge, name, conn.cfg.MaxDumpDetails)
	}
	return nil
}

// page reads one page. The error may be a *RetvalError, with the details and the reply set.
func (conn *connection) page(ctx context.Context, req api.Message) (*call, api.Message, error) {
	it, err := conn.prepareItem(req, 0)
	if err != nil {
		return nil, nil, err
	}
	c := newCall(1)
	conn.submit(ctx, job{call: c, items: []item{it}})
	conn.wait(ctx, c)
	results, err := conn.finish(ctx, c, []api.Message{req})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		err = fmt.Errorf("dump %s: %w", it.route.name, err)
	}
	return c, results[0].Reply, err
}
