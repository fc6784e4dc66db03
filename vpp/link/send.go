package link

import (
	"fmt"
	"time"
)

// sendLoop is the sender: the only goroutine that writes to the transport, so that the order of the
// table is the order on the wire.
func (s *session) sendLoop() {
	for {
		select {
		case j := <-s.jobs:
			s.sendJob(j)
		case <-s.probe:
			s.sendProbe()
		case <-s.dead:
			return
		}
	}
}

// sendJob sends the items of a job as the window lets them through, until the job is done, its
// caller has gone or the session ends.
func (s *session) sendJob(j job) {
	step := 1
	if j.together {
		step = len(j.items)
	}
	for i := 0; i < len(j.items); i += step {
		group := j.items[i : i+step]
		context, ok := s.admit(j.call, group)
		if !ok {
			return
		}
		for k, it := range group {
			if !s.write(context+uint32(k), it.data, it.route.name) {
				return
			}
		}
	}
}

// admit waits until the window has room for a group and enters it into the table. It returns the
// context of the first item, or false when the group must not be sent any more.
func (s *session) admit(c *call, group []item) (context uint32, ok bool) {
	room := 0
	for _, it := range group {
		room += it.room
	}
	for {
		context, state := s.tryAdmit(c, group, room)
		switch state {
		case admitted:
			return context, true
		case refused:
			return 0, false
		case full:
		}
		select {
		case <-s.space:
		case <-s.dead:
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
func (s *session) tryAdmit(c *call, group []item, room int) (context uint32, state admission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil || c.gone {
		return 0, refused
	}
	if s.queue.n > 0 && s.queue.room+room > s.cfg.WindowBytes {
		s.starved = true
		return 0, full
	}
	now := time.Now()
	for i, it := range group {
		entered := s.enter(pending{
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

// enter appends to the table; s.mu is held.
func (s *session) enter(p pending) uint32 {
	if s.queue.n == 0 {
		s.moved, s.turned = p.sent, p.sent
	}
	return s.queue.push(p)
}

// sendProbe sends a control_ping.
func (s *session) sendProbe() {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	context := s.enter(pending{route: s.ping, room: s.cfg.room(nil, len(s.pingFrame)), sent: time.Now()})
	s.mu.Unlock()
	s.write(context, append([]byte(nil), s.pingFrame...), s.ping.name)
}

// write hands one message to the transport. A failed write ends the session: whether VPP got the
// message is not known, and later replies could not be matched.
func (s *session) write(context uint32, data []byte, what string) bool {
	if err := s.api.SendMsg(context, data); err != nil {
		s.fail(fmt.Errorf("send %s: %w", what, err))
		return false
	}
	return true
}

// room signals a waiting sender that the table has shrunk. It waits for half of the window, so that
// sender and reader change over once per half window and not once per message. s.mu is held.
func (s *session) room() {
	if s.starved && s.queue.room <= s.cfg.WindowBytes/2 {
		s.starved = false
		poke(s.space)
	}
}
