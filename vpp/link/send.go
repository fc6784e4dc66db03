package link

import (
	"fmt"
	"time"
)

// sendLoop is the sender: the only goroutine that writes to the transport, so that the order of the
// table is the order on the wire.
func (conn *connection) sendLoop() {
	for {
		select {
		case j := <-conn.jobs:
			conn.sendJob(j)
		case <-conn.probe:
			conn.sendProbe()
		case <-conn.dead:
			return
		}
	}
}

// sendJob sends the items of a job as the window lets them through, until the job is done, its
// caller has gone or the connection ends.
func (conn *connection) sendJob(j job) {
	defer conn.flush()
	step := 1
	if j.together {
		step = len(j.items)
	}
	for i := 0; i < len(j.items); i += step {
		group := j.items[i : i+step]
		context, ok := conn.admit(j.call, group)
		if !ok {
			return
		}
		for k, it := range group {
			if !conn.write(context+uint32(k), it.data, it.route.name) {
				return
			}
		}
	}
}

// admit waits until the window has room for a group and enters it into the table. It returns the
// context of the first item, or false when the group must not be sent any more.
func (conn *connection) admit(c *call, group []item) (context uint32, ok bool) {
	room := 0
	for _, it := range group {
		room += it.room
	}
	for {
		context, state := conn.tryAdmit(c, group, room)
		switch state {
		case admitted:
			return context, true
		case refused:
			return 0, false
		case full:
		}
		if !conn.flush() {
			return 0, false
		}
		select {
		case <-conn.space:
		case <-conn.dead:
			return 0, false
		}
	}
}

// admission is the outcome of one attempt to enter a group into the table.
type admission uint8

const (
	admitted admission = iota
	full
	refused
)

// tryAdmit enters a group into the table if there is room for it.
func (conn *connection) tryAdmit(c *call, group []item, room int) (context uint32, state admission) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.cause != nil || c.gone {
		return 0, refused
	}
	if conn.queue.n > 0 && conn.queue.room+room > conn.cfg.WindowBytes {
		conn.starved = true
		return 0, full
	}
	now := time.Now()
	for i, it := range group {
		entered := conn.enter(pending{
			call: c, index: it.index, route: it.route, room: it.room, sent: now, ends: it.ends,
		})
		if i == 0 {
			context = entered
		}
		c.results[it.index].Err = errUnanswered
	}
	c.sent = true
	return context, admitted
}

// enter appends to the table; conn.mu is held.
func (conn *connection) enter(p pending) uint32 {
	if conn.queue.n == 0 {
		conn.moved, conn.turned = p.sent, p.sent
	}
	return conn.queue.push(p)
}

// sendProbe sends a control_ping.
func (conn *connection) sendProbe() {
	conn.mu.Lock()
	if conn.cause != nil {
		conn.mu.Unlock()
		return
	}
	context := conn.enter(pending{route: conn.ping, room: conn.cfg.room(nil, len(conn.pingFrame)), sent: time.Now()})
	conn.mu.Unlock()
	if conn.write(context, append([]byte(nil), conn.pingFrame...), conn.ping.name) {
		conn.flush()
	}
}

// write hands one message to the transport. A failed write ends the connection: whether VPP got the
// message is not known, and later replies could not be matched.
func (conn *connection) write(context uint32, data []byte, what string) bool {
	if err := conn.api.SendMsg(context, data); err != nil {
		conn.fail(fmt.Errorf("send %s: %w", what, err))
		return false
	}
	return true
}

// flush makes the transport write what it keeps: many messages in one system call. It fails as
// write does.
func (conn *connection) flush() bool {
	if err := conn.api.flush(); err != nil {
		conn.fail(fmt.Errorf("send to VPP: %w", err))
		return false
	}
	return true
}

// room signals a waiting sender that the table has shrunk. It waits for half of the window, so that
// sender and reader change over once per half window and not once per message. conn.mu is held.
func (conn *connection) room() {
	if conn.starved && conn.queue.room <= conn.cfg.WindowBytes/2 {
		conn.starved = false
		poke(conn.space)
	}
}
