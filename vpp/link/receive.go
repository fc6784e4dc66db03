package link

import (
	"fmt"
	"time"

	"go.fd.io/govpp/api"
)

// receive is the callback of the transport: it finds the request a frame belongs to, decodes the
// frame and hands the message over. It never waits for a consumer, so that one slow caller cannot
// hold back the replies of the others. data is only valid until it returns.
func (s *session) receive(id uint16, data []byte) {
	m := s.match(id, data)
	switch {
	case m.err != nil:
		s.fail(m.err)
	case m.stray != "":
		s.log.Warn("ignoring an unexpected frame from VPP, counting further ones silently", "message", id, "why", m.stray)
	case m.in != nil:
		s.accept(m, data)
	}
}

// accept decodes a matched frame outside the lock and delivers it.
func (s *session) accept(m match, data []byte) {
	var msg api.Message
	if m.wanted {
		var err error
		if msg, err = m.in.decode(data); err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrProtocol, err))
			return
		}
	}
	s.deliver(m.context, m.in, msg, len(data))
}

// match is the classification of a frame.
type match struct {
	// in and context identify it; in is nil when there is nothing to deliver.
	in      *incoming
	context uint32
	// wanted says that a caller waits for the content.
	wanted bool
	// stray says, for the first frame of the session that belongs to nothing, why.
	stray string
	// err ends the session.
	err error
}

// match finds the request that a frame answers.
func (s *session) match(id uint16, data []byte) match {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return match{}
	}
	s.heard = time.Now()
	in := s.incoming[id]
	if in == nil {
		return s.stray("message that was never asked for")
	}
	if in.event {
		poke(s.event)
		return match{}
	}
	context, ok := in.context(data)
	if !ok {
		return match{err: fmt.Errorf("%w: frame of %d bytes for message %d", ErrProtocol, len(data), id)}
	}
	p := s.queue.get(context)
	if p == nil || p.done {
		return s.stray("answer to no request")
	}
	if in != p.route.reply && in != p.route.details {
		return match{err: fmt.Errorf("%w: message %d (%s) answers %s", ErrProtocol, id, in.typ.Name(), p.route.name)}
	}
	return match{in: in, context: context, wanted: p.call != nil && !p.call.gone}
}

// stray counts a frame that belongs to nothing; only the first of a session is reported. s.mu is
// held.
func (s *session) stray(why string) match {
	s.strays++
	if s.strays > 1 {
		why = ""
	}
	return match{stray: why}
}

// deliver enters a decoded message into the call that waits for it; msg is nil when the caller has
// stopped waiting.
func (s *session) deliver(context uint32, in *incoming, msg api.Message, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.queue.get(context)
	if s.cause != nil || p == nil || p.done {
		return
	}
	if in == p.route.details {
		s.detail(p, context, msg, size)
		return
	}
	s.complete(p, context, in, msg)
	if s.queue.pop() {
		s.moved, s.turned = s.heard, s.heard
		s.room()
	}
}

// complete marks an entry as answered, with the dump that its reply ends. s.mu is held.
func (s *session) complete(p *pending, context uint32, in *incoming, msg api.Message) {
	p.done = true
	settled := 1
	if dump := s.queue.get(context - 1); p.ends && dump != nil {
		dump.done = true
		settled++
	}
	if p.call == nil || p.call.gone {
		return
	}
	if msg != nil {
		p.call.results[p.index] = Result{Reply: msg, Err: in.status(p.route.name, msg)}
	}
	p.call.settle(settled)
}

// detail keeps one detail of a dump; one that exceeds the limits ends the session. s.mu is held.
func (s *session) detail(p *pending, context uint32, msg api.Message, size int) {
	if context == s.queue.base {
		s.moved = s.heard
	}
	c := p.call
	if c == nil || c.gone || msg == nil {
		return
	}
	c.bytes += size
	if err := s.tooLarge(p.route.name, len(c.details)+1, c.bytes); err != nil {
		s.end(err)
		c.details = nil
		return
	}
	c.details = append(c.details, msg)
}

// tooLarge returns an error when a dump has more than it may.
func (s *session) tooLarge(name string, details, bytes int) error {
	switch {
	case details > s.cfg.MaxDumpDetails:
		return fmt.Errorf("%w: %s: more than %d details", ErrTooLarge, name, s.cfg.MaxDumpDetails)
	case bytes > s.cfg.MaxDumpBytes:
		return fmt.Errorf("%w: %s: more than %d bytes", ErrTooLarge, name, s.cfg.MaxDumpBytes)
	}
	return nil
}
