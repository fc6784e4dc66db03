package process

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// traffic are connections that are held open, with packets in both directions all the time.
type traffic struct {
	vpp *simulator.VPP

	mu     sync.Mutex
	held   []held
	port   uint16
	rounds int // of packets over all connections
	broken []string
}

// held is one connection.
type held struct {
	name string
	*simulator.Connection
}

// open dials until a connection leads to the wanted endpoint ("" = any), and holds that one.
func (c *traffic) open(t *testing.T, name, in, source, vip string, proto uint8, endpoint string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 200 {
		c.port++
		p := simulator.Packet{In: in, Src: netip.AddrPortFrom(netip.MustParseAddr(source), c.port), Dst: netip.MustParseAddrPort(vip), Proto: proto}
		connection, err := c.vpp.Dial(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if to := connection.Opened().Dst; endpoint == "" || to.Addr().String() == endpoint {
			c.held = append(c.held, held{fmt.Sprintf("%s from %s to %s", name, p.Src, to), connection})
			return
		}
	}
	t.Fatalf("%s: no connection leads to %s", name, endpoint)
}

// round sends packets over every connection.
func (c *traffic) round() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.held {
		if err := h.Exchange(); err != nil && len(c.broken) < 10 {
			c.broken = append(c.broken, h.name+": "+err.Error())
		}
	}
	c.rounds++
}

// flow sends packets until the returned function is called, which may be done more than once.
func (c *traffic) flow() (still func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c.round()
			select {
			case <-ctx.Done():
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// check reports connections that were interrupted, at any time up to now.
func (c *traffic) check(t *testing.T) {
	t.Helper()
	c.round()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.broken {
		t.Errorf("interrupted: %s", b)
	}
	if len(c.broken) > 0 {
		t.FailNow()
	}
}
