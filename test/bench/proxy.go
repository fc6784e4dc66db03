package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The messages that change a row of NAT44. VPP numbers its messages anew at each start, and tells
// every client the numbers in its first answer.
const (
	rowMessage   = "nat44_add_del_lb_static_mapping_"
	localMessage = "nat44_lb_static_mapping_add_del_local_"
)

// answer is VPP's answer to a change of a row.
type answer struct {
	at    time.Time
	added [4]byte // the backend that was added, the first of a new row; zero = another change
}

// proxy stands between the agent and the API socket of VPP, and notes when VPP has answered a
// change of a row.
type proxy struct {
	to       string
	listener net.Listener
	records  bool // keep what the agent sends; set before there is an agent

	mu            sync.Mutex
	answers       []answer // since the last take
	conversations []*conversation
}

// newProxy listens at a socket and passes connections on to another one.
func newProxy(to, at string) (*proxy, error) {
	listener, err := net.Listen("unix", at)
	if err != nil {
		return nil, fmt.Errorf("listen in front of VPP: %w", err)
	}
	p := &proxy{to: to, listener: listener}
	go func() {
		for {
			agent, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(agent)
		}
	}()
	return p, nil
}

// close ends the proxy.
func (p *proxy) close() { _ = p.listener.Close() }

// serve passes on one connection.
func (p *proxy) serve(agent net.Conn) {
	defer func() { _ = agent.Close() }()
	vpp, err := net.Dial("unix", p.to)
	if err != nil {
		return
	}
	defer func() { _ = vpp.Close() }()
	c := &conversation{records: p.records}
	p.mu.Lock()
	p.conversations = append(p.conversations, c)
	p.mu.Unlock()
	go func() {
		relay(vpp, agent, c.asked)
		_ = vpp.Close()
	}()
	relay(agent, vpp, func(message []byte) {
		if added, is := c.answered(message); is {
			p.mu.Lock()
			p.answers = append(p.answers, answer{time.Now(), added})
			p.mu.Unlock()
		}
	})
}

// relay passes on what it reads until a connection ends, as it comes, and shows each message before
// its end is passed on.
func relay(to io.Writer, from io.Reader, show func(message []byte)) {
	var rest []byte // the beginning of a message
	for room := make([]byte, 64<<10); ; {
		n, err := from.Read(room)
		rest = append(rest, room[:n]...)
		for len(rest) >= frameHeader {
			end := frameHeader + int(binary.BigEndian.Uint32(rest[frameLength:]))
			if len(rest) < end {
				break
			}
			show(bytes.Clone(rest[frameHeader:end]))
			rest = rest[end:]
		}
		if _, failed := to.Write(room[:n]); err != nil || failed != nil {
			return
		}
	}
}

// A message has a header before it, with its length.
const frameHeader, frameLength = 16, 8

// conversation is one connection of the agent with VPP.
type conversation struct {
	records                          bool
	mu                               sync.Mutex
	row, rowReply, local, localReply uint16             // messages; 0 = unknown
	adds                             map[uint32][4]byte // by context, while unanswered
	kept                             [][]byte           // with records
}

// asked notes a request that adds backends to a row, or adds a row; of this one its first backend.
func (c *conversation) asked(message []byte) {
	const context, isAdd, ofLocal, ofRow, address = 6, 10, 18, 91, 4
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records {
		c.kept = append(c.kept, message)
	}
	if len(message) < ofLocal+address || c.adds == nil || message[isAdd] == 0 {
		return
	}
	at := map[uint16]int{c.local: ofLocal, c.row: ofRow}[binary.BigEndian.Uint16(message)]
	if at > 0 && len(message) >= at+address {
		c.adds[binary.BigEndian.Uint32(message[context:])] = [4]byte(message[at : at+address])
	}
}

// answered reports whether the message answers a change of a row, and the backend that was added.
func (c *conversation) answered(message []byte) (added [4]byte, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.adds == nil && bytes.Contains(message, []byte(localMessage)) {
		c.adds = map[uint32][4]byte{}
		c.rowReply, c.localReply = numberOf(message, rowMessage+"reply_"), numberOf(message, localMessage+"reply_")
		c.row, c.local = numberOf(message, rowMessage), numberOf(message, localMessage)
		return added, false
	}
	const context, end = 2, 6
	number := uint16(0)
	if len(message) >= end {
		number = binary.BigEndian.Uint16(message)
	}
	if number == 0 || number != c.rowReply && number != c.localReply {
		return added, false
	}
	asked := binary.BigEndian.Uint32(message[context:])
	added = c.adds[asked]
	delete(c.adds, asked)
	return added, true
}

// numberOf finds the number of a message in the table of messages. The name ends with the checksum
// of 8 hexadecimal digits.
func numberOf(table []byte, name string) uint16 {
	const checksum = 8
	for rest := table; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 2 || len(rest) <= i+len(name)+checksum {
			return 0
		}
		if rest[i+len(name)+checksum] == 0 {
			return binary.BigEndian.Uint16(rest[i-2:])
		}
		rest = rest[i+1:]
	}
}

// take returns the answers since the last one, and forgets them.
func (p *proxy) take() (answers []answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers, p.answers = p.answers, nil
	return answers
}

// calm waits until VPP has answered no change for so long.
func (p *proxy) calm(long time.Duration) {
	for time.Sleep(long); len(p.take()) > 0; time.Sleep(long) {
	}
}

// settled returns all answers once VPP has answered no change for a second.
func (p *proxy) settled() (all []answer) {
	for {
		time.Sleep(time.Second)
		more := p.take()
		if len(more) == 0 {
			return all
		}
		all = append(all, more...)
	}
}

// answer waits for the first answer since the last calm.
func (p *proxy) answer(ctx context.Context) (time.Time, error) {
	const interval, limit = 100 * time.Microsecond, time.Minute
	for began := time.Now(); time.Since(began) < limit && ctx.Err() == nil; time.Sleep(interval) {
		if answers := p.take(); len(answers) > 0 {
			return answers[0].at, nil
		}
	}
	return time.Time{}, errors.Join(ctx.Err(), errors.New("VPP has not answered a change of a row within a minute"))
}
