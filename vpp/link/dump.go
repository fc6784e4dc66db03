package link

import (
	"context"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

// Dump implements Caller on this session.
func (s *session) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	it, err := s.prepareItem(req, 0)
	if err != nil {
		return err
	}
	var details []api.Message
	switch it.route.kind {
	case kindDump:
		details, err = s.dump(ctx, req, it)
	case kindCursor:
		details, err = s.pages(ctx, req)
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

// dump sends a dump request and the control_ping whose reply says that the details are complete: VPP answers in order.
func (s *session) dump(ctx context.Context, req api.Message, it item) ([]api.Message, error) {
	ping := item{route: s.ping, data: append([]byte(nil), s.pingFrame...), index: 1, ends: true}
	c := newCall(2)
	s.submit(ctx, job{call: c, items: []item{it, ping}, together: true})
	s.wait(ctx, c)
	results, err := s.finish(ctx, c, []api.Message{req, &memclnt.ControlPing{}})
	if err != nil {
		return nil, fmt.Errorf("dump %s: %w", it.route.name, err)
	}
	if c.overflow {
		return nil, fmt.Errorf("%w: %s: more than %d details or %d bytes", ErrTooLarge, it.route.name, s.cfg.MaxDumpDetails, s.cfg.MaxDumpBytes)
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

// pages follows a cursor. Only retval 0 is the end: with an empty set VPP's cursor is uninitialised memory.
func (s *session) pages(ctx context.Context, req api.Message) ([]api.Message, error) {
	var all []api.Message
	seen := map[uint32]bool{cursorOf(req): true}
	bytes := 0
	for first := true; ; first = false {
		c, reply, err := s.page(ctx, req)
		code, known := Retval(err)
		if !known {
			return nil, err
		}
		all = append(all, c.details...)
		bytes += c.bytes
		if len(all) > s.cfg.MaxDumpDetails || bytes > s.cfg.MaxDumpBytes {
			return nil, fmt.Errorf("%w: %s", ErrTooLarge, req.GetMessageName())
		}
		switch {
		case code == 0:
			return all, nil
		case code == retvalInvalidValue && first && len(all) == 0:
			// VPP's macro for pools returns this when the pool is empty (REPLY_AND_DETAILS_MACRO in api_helper_macros.h).
			return nil, nil
		case code != retvalAgain:
			return nil, err
		}
		next := cursorOf(reply)
		if seen[next] {
			return nil, fmt.Errorf("%w: %s: cursor %d repeats", ErrProtocol, req.GetMessageName(), next)
		}
		seen[next] = true
		req = withCursor(req, next)
	}
}

// page reads one page. The error may be a *RetvalError, with the details and the reply set.
func (s *session) page(ctx context.Context, req api.Message) (*call, api.Message, error) {
	it, err := s.prepareItem(req, 0)
	if err != nil {
		return nil, nil, err
	}
	c := newCall(1)
	s.submit(ctx, job{call: c, items: []item{it}})
	s.wait(ctx, c)
	results, err := s.finish(ctx, c, []api.Message{req})
	if err == nil {
		err = results[0].Err
	}
	if c.overflow {
		err = ErrTooLarge
	}
	if err != nil {
		err = fmt.Errorf("dump %s: %w", it.route.name, err)
	}
	return c, results[0].Reply, err
}
