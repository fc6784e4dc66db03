package link

import (
	"fmt"
	"time"

	"go.fd.io/govpp/api"
)

// receive is the callback of the transport: it finds the request a frame belongs to, decodes the
// frame and hands the message over. It never waits for a consumer, so that one slow caller cannot
// hold back the replies of the others. data is only valid until it returns.
func (conn *connection) receive(id uint16, data []byte) {
	m := conn.match(id, data)
	switch {
	case m.err != nil:
		conn.fail(m.err)
	case m.stray != "":
		conn.log.Warn("ignoring an unexpected frame from VPP, counting further ones silently", "message", id, "why", m.stray)
	case m.in != nil:
		conn.accept(m, data)
	}
}

// accept decodes a matched frame outside the lock and delivers it.
func (conn *connection) accept(m match, data []byte) {
	var msg api.Message
	if m.wanted {
		var err error
		if msg, err = m.in.decode(data); err != nil {
			conn.fail(fmt.Errorf("%w: %w", ErrProtocol, err))
			return
		}
	}
	conn.deliver(m.context, m.in, msg, len(data))
}

// match is the classification of a frame.
type match struct {
	// in and context identify it; in is nil when there is nothing to deliver.
	in      *incoming
	context uint32
	// wanted says that a caller waits for the content.
	wanted bool
	// stray says, for the first frame of the connection that belongs to nothing, why.
	stray string
	// err ends the connection.
	err error
}

// match finds the request that a frame answers.
func (conn *connection) match(id uint16, data []byte) match {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.cause != nil {
		return match{}
	}
	conn.heard = time.Now()
	in := conn.incoming[id]
	if in == nil {
		return conn.stray("message that was never asked for")
	}
	if in.event != nil {
		poke(in.event)
		return match{}
	}
	context, ok := in.context(data)
	if !ok {
		return match{err: fmt.Errorf("%w: frame of %d bytes for message %d", ErrProtocol, len(data), id)}
	}
	p := conn.queue.get(context)
	if p == nil || p.done {
		return conn.stray("answer to no request")
	}
	if in != p.route.reply && in != p.route.details {
		return match{err: fmt.Errorf("%w: message %d (%s) answers %s", ErrProtocol, id, in.typ.Name(), p.route.name)}
	}
	return match{in: in, context: context, wanted: p.call != nil && !p.call.gone}
}

// stray counts a frame that belongs to nothing; only the first of a connection is reported. conn.mu
// is held.
func (conn *connection) stray(why string) match {
	conn.strays++
	if conn.strays > 1 {
		why = ""
	}
	return match{stray: why}
}

// deliver enters a decoded message into the call that waits for it; msg is nil when the caller has
// stopped waiting.
func (conn *connection) deliver(context uint32, in *incoming, msg api.Message, size int) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	p := conn.queue.get(context)
	if conn.cause != nil || p == nil || p.done {
		return
	}
	if in == p.route.details {
		conn.detail(p, context, msg, size)
		return
	}
	conn.complete(p, context, in, msg)
	if conn.queue.pop() {
		conn.moved, conn.turned = conn.heard, conn.heard
		conn.room()
	}
}

// complete marks an entry as answered, with the dump that its reply ends. conn.mu is held.
func (conn *connection) complete(p *pending, context uint32, in *incoming, msg api.Message) {
	p.done = true
	settled := 1
	if dump := conn.queue.get(context - 1); p.ends && dump != nil {
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

// detail keeps one detail of a dump; one that exceeds the limits ends the connection. conn.mu is
// held.
func (conn *connection) detail(p *pending, context uint32, msg api.Message, size int) {
	if context == conn.queue.base {
		conn.moved = conn.heard
	}
	c := p.call
	if c == nil || c.gone || msg == nil {
		return
	}
	c.bytes += size
	if err := conn.tooLarge(p.route.name, len(c.details)+1, c.bytes); err != nil {
		conn.end(err)
		c.details = nil
		return
	}
	c.details = append(c.details, msg)
}

// tooLarge returns an error when a dump has more than it may.
func (conn *connection) tooLarge(name string, details, bytes int) error {
	switch {
	case details > conn.cfg.MaxDumpDetails:
		return fmt.Errorf("%w: %s: more than %d details", ErrTooLarge, name, conn.cfg.MaxDumpDetails)
	case bytes > conn.cfg.MaxDumpBytes:
		return fmt.Errorf("%w: %s: more than %d bytes", ErrTooLarge, name, conn.cfg.MaxDumpBytes)
	}
	return nil
}
