package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// rowAnswers are VPP's answers to changes of rows of NAT44. VPP numbers its messages anew at each
// start, and tells every client the numbers in its first answer.
var rowAnswers = []string{"nat44_lb_static_mapping_add_del_local_reply_", "nat44_add_del_lb_static_mapping_reply_"}

// proxy stands between the agent and the API socket of VPP, and notes when VPP has answered a
// change of a row.
type proxy struct {
	to       string
	listener net.Listener

	mu      sync.Mutex
	answers []time.Time // since the last calm
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
	go func() {
		_, _ = io.Copy(vpp, agent)
		_ = vpp.Close()
	}()
	var numbers []uint16
	for {
		const header = 16 // the length is in bytes 8 to 11
		frame := make([]byte, header)
		if _, err := io.ReadFull(vpp, frame); err != nil {
			return
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame[8:]))...)
		if _, err := io.ReadFull(vpp, frame[header:]); err != nil {
			return
		}
		if numbers == nil {
			numbers = numbersIn(frame)
		}
		if slices.Contains(numbers, binary.BigEndian.Uint16(frame[header:])) {
			p.note(time.Now())
		}
		if _, err := agent.Write(frame); err != nil {
			return
		}
	}
}

// numbersIn returns the numbers of the answers to look for, if the frame has the table of messages.
func numbersIn(frame []byte) (numbers []uint16) {
	for _, name := range rowAnswers {
		if i := bytes.Index(frame, []byte(name)); i >= 2 {
			numbers = append(numbers, binary.BigEndian.Uint16(frame[i-2:]))
		}
	}
	return numbers
}

// note adds an answer.
func (p *proxy) note(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, at)
}

// take returns the answers since the last one, and forgets them.
func (p *proxy) take() (answers []time.Time) {
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

// answer waits for the first answer since the last calm.
func (p *proxy) answer(ctx context.Context) (time.Time, error) {
	const interval, limit = 100 * time.Microsecond, time.Minute
	for began := time.Now(); time.Since(began) < limit && ctx.Err() == nil; time.Sleep(interval) {
		if answers := p.take(); len(answers) > 0 {
			return answers[0], nil
		}
	}
	return time.Time{}, errors.Join(ctx.Err(), errors.New("VPP has not answered a change of a row within a minute"))
}
