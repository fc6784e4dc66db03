package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// recorded are the messages of a connection to VPP, and the numbers of the ones that add rows.
type recorded struct {
	messages      [][]byte
	row, rowReply uint16
}

// bare sends what the agent sends to an empty VPP to another empty VPP, without waiting for
// answers: the least time that the rows may take.
func (n *node) bare(_ options, services int, out *figures) error {
	kill(n.agent)
	if err := n.emptyVPP(); err != nil {
		return err
	}
	p, err := newProxy(n.file("api.sock"), n.file("recorder.sock"))
	if err != nil {
		return err
	}
	p.records = true
	usual := n.vppSocket
	n.vppSocket = n.file("recorder.sock")
	err = errors.Join(n.startAgent(), n.ready())
	kill(n.agent)
	p.close()
	if n.vppSocket = usual; err != nil {
		return err
	}
	if err := n.emptyVPP(); err != nil {
		return err
	}
	took, rows, err := p.longest().replay(n.file("api.sock"))
	if err != nil {
		return err
	}
	out.add("bare loop", services, "s", took.Seconds())
	out.add("bare loop: rows", services, "", float64(rows))
	return errors.Join(n.startAgent(), n.ready())
}

// emptyVPP replaces VPP by one without rows.
func (n *node) emptyVPP() error {
	kill(n.vpp)
	return errors.Join(n.startVPP(), n.setUp())
}

// longest is the connection with the most messages.
func (p *proxy) longest() (r recorded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conversations {
		c.mu.Lock()
		if len(c.kept) > len(r.messages) {
			r = recorded{slices.Clone(c.kept), c.row, c.rowReply}
		}
		c.mu.Unlock()
	}
	return r
}

// replay sends the messages over a connection of its own. The time runs from the first message that
// adds a row to the last answer to one.
func (r recorded) replay(socket string) (took time.Duration, rows int, err error) {
	adds := func(message []byte) bool { return binary.BigEndian.Uint16(message) == r.row }
	for _, message := range r.messages {
		if adds(message) {
			rows++
		}
	}
	if rows == 0 {
		return 0, 0, errors.New("the agent has added no row")
	}
	vpp, err := net.Dial("unix", socket)
	if err != nil {
		return 0, 0, fmt.Errorf("connect to VPP: %w", err)
	}
	defer func() { _ = vpp.Close() }()
	const patience = time.Minute
	_ = vpp.SetDeadline(time.Now().Add(patience))
	var began time.Time
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		out := bufio.NewWriterSize(vpp, 64<<10)
		for _, message := range r.messages {
			if began.IsZero() && adds(message) {
				_ = out.Flush()
				began = time.Now()
			}
			_, _ = out.Write(frame(message)) // without it, a row is not answered
		}
		_ = out.Flush()
	}()
	refused, answered := 0, 0
	var ended time.Time
	relay(io.Discard, vpp, func(message []byte) {
		const code = 6
		if len(message) < code+4 || binary.BigEndian.Uint16(message) != r.rowReply {
			return
		}
		if binary.BigEndian.Uint32(message[code:]) != 0 {
			refused++
		}
		if answered++; answered == rows {
			ended = time.Now()
			_ = vpp.Close() // which ends relay
		}
	})
	if answered < rows {
		return 0, 0, fmt.Errorf("VPP has answered %d of %d rows", answered, rows)
	}
	<-sent
	if refused > 0 {
		return 0, 0, fmt.Errorf("VPP has refused %d of %d rows", refused, rows)
	}
	return ended.Sub(began), rows, nil
}

// frame is a message as it is sent.
func frame(message []byte) []byte {
	f := make([]byte, frameHeader, frameHeader+len(message))
	binary.BigEndian.PutUint32(f[frameLength:], uint32(len(message)))
	return append(f, message...)
}
