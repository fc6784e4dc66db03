package simulator

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// maxUnread bounds the replies that a client leaves unread, in bytes. VPP queues without limit; a
// test that runs into this one has lost its reader.
const maxUnread = 512 << 20

// maxFrame is the largest payload that is accepted, in bytes; VPP has no limit of its own. The
// largest useful request, a load-balancing mapping with 65535 backends, has 720 kB.
const maxFrame = 4 << 20

// drainTime is how long a closing connection may take to hand over the replies that were given
// before it was closed.
const drainTime = time.Second

// client is one connection to the API socket.
type client struct {
	vpp   *VPP
	conn  *net.UnixConn
	inc   *incarnation
	index uint32 // client_index in the requests of the client
	gone  chan struct{}

	// ready says that the socket is readable although VPP is busy: a frame waits in it, or the
	// client has closed it (dead). Both are guarded by vpp.mu.
	ready, dead bool

	mu      sync.Mutex
	out     []byte
	closing bool
	wake    chan struct{}
}

// clientIndexBit marks a client index as one of the socket transport.
const clientIndexBit = 1 << 31

// accept serves new connections until the listener is closed.
func (v *VPP) accept(ln *net.UnixListener) {
	for {
		conn, err := ln.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || v.ctx.Err() != nil {
				return
			}
			v.log.Error("cannot accept a client", "err", err)
			return
		}
		if !v.admit(conn, ln) {
			_ = conn.Close()
		}
	}
}

// admit starts the goroutines of a new connection, unless the incarnation that it connected to is
// gone.
func (v *VPP) admit(conn *net.UnixConn, ln *net.UnixListener) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inc == nil || v.listener != ln {
		return false
	}
	v.accepted++
	c := &client{
		vpp:   v,
		conn:  conn,
		inc:   v.inc,
		index: clientIndexBit | v.accepted,
		gone:  make(chan struct{}),
		wake:  make(chan struct{}, 1),
	}
	v.clients[c.index] = c
	v.wg.Go(c.readLoop)
	v.wg.Go(c.writeLoop)
	return true
}

// readLoop executes the requests of one connection until it breaks.
func (c *client) readLoop() {
	frames := model.NewFrameReader(c.conn, maxFrame)
	for {
		payload, err := frames.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				c.vpp.log.Debug("connection of a client broke", "client", c.index, "err", err)
			}
			break
		}
		if !c.vpp.serve(c, payload) {
			break
		}
	}
	c.vpp.forget(c)
}

// forget removes a client and everything VPP holds for it, as soon as its main thread is not busy.
func (v *VPP) forget(c *client) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c.mu.Lock()
	byVPP := c.closing
	c.mu.Unlock()
	if v.hung != nil && !byVPP && v.clients[c.index] == c {
		c.dead = true
		v.readable(c)
		return
	}
	v.forgetLocked(c)
}

// forgetLocked is forget with mu held and a VPP that is not busy.
func (v *VPP) forgetLocked(c *client) {
	if v.clients[c.index] == c {
		delete(v.clients, c.index)
		c.inc.model.Unsubscribe(c.index)
	}
	c.shut()
}

// shut makes the connection close as soon as its queued replies are written. It does not block and
// may be called more than once.
func (c *client) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	c.closing = true
	close(c.gone)
	_ = c.conn.SetReadDeadline(time.Now())
	_ = c.conn.SetWriteDeadline(time.Now().Add(drainTime))
	c.signal()
}

// signal wakes the writer. c.mu is held.
func (c *client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// send queues a message. It reports false when the client is going away.
func (c *client) send(msg api.Message, context uint32) bool {
	m := c.vpp.catalog.Named(msg.GetMessageName())
	if m == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	out, err := m.AppendFrame(c.out, msg, c.inc.ids.Of(m.Name), context)
	if err != nil {
		c.vpp.log.Error("cannot encode a reply, dropping it", "err", err)
		return true
	}
	c.out = out
	if len(c.out) > maxUnread {
		c.vpp.log.Error("closing the connection of a client that does not read its replies", "client", c.index)
		c.out = nil
		c.closing = true
		close(c.gone)
		_ = c.conn.SetDeadline(time.Now())
	}
	c.signal()
	return true
}

// sendHalf queues the first half of a message and closes the connection behind it.
func (c *client) sendHalf(msg api.Message, context uint32) {
	if m := c.vpp.catalog.Named(msg.GetMessageName()); m != nil {
		c.mu.Lock()
		before := len(c.out)
		if out, err := m.AppendFrame(c.out, msg, c.inc.ids.Of(m.Name), context); err == nil && !c.closing {
			c.out = out[:before+(len(out)-before)/2]
		}
		c.mu.Unlock()
	}
	c.shut()
}

// writeLoop writes queued replies and closes the connection in the end.
func (c *client) writeLoop() {
	defer func() { _ = c.conn.Close() }()
	var spare []byte
	for range c.wake {
		c.mu.Lock()
		buf, closing := c.out, c.closing
		c.out = spare[:0]
		c.mu.Unlock()
		if len(buf) > 0 {
			if _, err := c.conn.Write(buf); err != nil {
				c.shut()
				return
			}
		}
		if closing {
			return
		}
		spare = buf
	}
}

// serve executes one frame. It reports false when the connection is to be closed.
func (v *VPP) serve(c *client, payload []byte) bool {
	m := v.requestOf(c, payload)
	if !v.enter(c) {
		return false
	}
	if m == nil {
		v.counters.dropped++
		v.mu.Unlock()
		return true
	}
	req, ok := m.Decode(payload)
	if !ok {
		v.counters.dropped++
		v.mu.Unlock()
		return true
	}
	fault := v.takeFault(m.Name, req)
	if fault.Delay > 0 {
		v.mu.Unlock()
		if !c.pause(fault.Delay) || !v.enter(c) {
			return false
		}
	}
	defer v.mu.Unlock()
	return v.execute(c, m, req, payload, fault)
}

// requestOf finds the request that a payload claims to be, nil for garbage. VPP looks at the id
// only; a client that closes with the id of the reply instead of the request is understood too.
func (v *VPP) requestOf(c *client, payload []byte) *model.Message {
	if len(payload) < 2 {
		return nil
	}
	m := c.inc.ids.Message(binary.BigEndian.Uint16(payload))
	if m != nil && m.Name == "sockclnt_delete_reply" {
		m = v.catalog.Named("sockclnt_delete")
	}
	if m == nil || !m.Request || len(payload) < m.Body {
		return nil
	}
	return m
}

// enter locks the model for a request of c. It waits while VPP hangs and reports false, unlocked,
// when the connection is gone.
func (v *VPP) enter(c *client) bool {
	for {
		v.mu.Lock()
		if v.inc != c.inc || v.clients[c.index] != c {
			v.mu.Unlock()
			return false
		}
		hung := v.hung
		if hung == nil {
			c.ready = false
			return true
		}
		v.readable(c)
		v.mu.Unlock()
		select {
		case <-hung:
		case <-c.gone:
			return false
		}
	}
}

// pause sleeps for d unless the connection ends first.
func (c *client) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.gone:
		return false
	}
}

// execute runs one decoded request with the model locked and reports whether the connection stays
// open.
func (v *VPP) execute(c *client, m *model.Message, req api.Message, payload []byte, fault Fault) bool {
	target := c
	if m.Body == 10 {
		// Replies go to the client that the request names, not to its sender.
		target = v.clients[binary.BigEndian.Uint32(payload[2:6])]
	}
	class := v.handlers[m.Name].Class
	v.counters.count(m.Name, class)
	if fault.before(v, c) {
		return !fault.Disconnect && v.inc == c.inc
	}
	if target == nil {
		v.counters.dropped++
		return true
	}
	context := uint32(0)
	if m.Context > 0 {
		context = binary.BigEndian.Uint32(payload[m.Context:])
	}
	call := model.NewCall(c.inc.model, c.inc.pid, target.index, func(reply api.Message) {
		// a client that has the reply must find its effect in the statistics
		v.updateStats(c.inc.model)
		switch {
		case fault.Swallow:
		case fault.CloseMidFrame:
			target.sendHalf(reply, context)
		default:
			target.send(reply, context)
		}
	})
	if fault.Retval != 0 && m.Reply != nil {
		call.Reply(model.RetvalReply(m.Reply, fault.Retval))
	} else {
		v.handlers.Handle(call, m, req)
	}
	if v.opts.Observe != nil {
		v.opts.Observe(req, class == model.ClassWrite)
	}
	v.afterwards(c.inc.model)
	return v.inc == c.inc
}

// publish sends the interface events that the last request caused. Several changes of one interface
// are one event, whose flags show only what went up. mu is held.
func (v *VPP) publish(m *model.Model) {
	if len(m.Pending) == 0 {
		return
	}
	clients := slices.Sorted(maps.Keys(m.Subscribers))
	for _, index := range slices.Sorted(maps.Keys(m.Pending)) {
		change := m.Pending[index]
		event := interfaces.SwInterfaceEvent{
			SwIfIndex: interface_types.InterfaceIndex(index),
			Flags:     model.StatusFlags(change.AdminUp, change.LinkUp),
			Deleted:   change.Deleted,
		}
		for _, id := range clients {
			if client := v.clients[id]; client != nil {
				event.PID = m.Subscribers[id]
				client.send(&event, id)
			}
		}
	}
	clear(m.Pending)
}

// sockclntCreate answers the handshake with the client's index and the message table of this
// incarnation. It may be repeated.
func (v *VPP) sockclntCreate(c *model.Call, _ *memclnt.SockclntCreate) {
	reply := &memclnt.SockclntCreateReply{
		MessageTable: v.inc.ids.Entries,
		Count:        uint16(len(v.inc.ids.Entries)),
	}
	if c.Client != vnet.None {
		reply.Index = c.Client
	}
	c.Reply(reply)
}

// sockclntDelete answers 1 for a live registration, -1 otherwise, and closes the connection that it
// names.
func (v *VPP) sockclntDelete(c *model.Call, req *memclnt.SockclntDelete) {
	target := v.clients[req.Index]
	if target == nil {
		c.Reply(&memclnt.SockclntDeleteReply{Response: -1})
		return
	}
	c.Reply(&memclnt.SockclntDeleteReply{Response: 1})
	delete(v.clients, target.index)
	c.Unsubscribe(target.index)
	target.shut()
}

// controlPing answers with the process id of this incarnation.
func controlPing(c *model.Call, _ *memclnt.ControlPing) {
	reply := &memclnt.ControlPingReply{VpePID: c.Pid}
	if c.Client != vnet.None {
		reply.ClientIndex = c.Client
	}
	c.Reply(reply)
}
