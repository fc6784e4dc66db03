package capture

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestPacketsOfARealVPP: a packet to a service is followed to the endpoint, one to another address
// is left out.
func TestPacketsOfARealVPP(t *testing.T) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	p := realvpp.Start(t, binary, plugins)
	g := realvpp.NewGenerator(t, p)
	clients, _ := g.Port(t, false), g.Port(t, false)
	for _, command := range []string{
		"set interface state pg0 up", "set interface state pg1 up", "set interface ip address pg0 192.168.16.1/24", "set interface ip address pg1 10.1.1.1/24",
		"nat44 plugin enable sessions 1000", "set interface nat44 in pg1 out pg0", "set interface nat44 in pg0 out pg1",
	} {
		g.Command(t, command)
	}
	raw := realvpp.NewRaw(t, p.Socket())
	if retval := raw.Retval(t, &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalAddr: [4]byte{10, 96, 0, 10}, ExternalPort: 80, Protocol: rule.TCP, LocalNum: 2,
		Locals: []nat44_ed.Nat44LbAddrPort{{Addr: [4]byte{10, 1, 1, 3}, Port: 8080, Probability: 7}, {Addr: [4]byte{10, 1, 1, 4}, Port: 8080, Probability: 7}},
	}); retval != 0 {
		t.Fatalf("mapping: %d", retval)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	vpp := link.New(link.Config{Socket: p.Socket()}, slog.New(slog.DiscardHandler))
	up, done := make(chan bool, 10), make(chan error, 1)
	go func() { done <- vpp.Run(ctx, func(s *messages.LinkState) { up <- s.GetUp() }) }()
	for !<-up {
	}
	web := netip.MustParseAddrPort("10.96.0.10:80")
	options := Options{Scan: 50, Most: 1, Match: func(p *Packet) bool { return p.Of(web, "TCP") }, Every: 10 * time.Millisecond}
	traced := make(chan struct{})
	var packets []Packet
	var seen int
	var err error
	go func() {
		defer close(traced)
		packets, seen, err = Run(ctx, vpp, options)
	}()
	client := netip.MustParseAddrPort("192.168.16.9:40000")
	for sent := false; !sent; {
		g.Exchange(t, []realvpp.Packet{
			{Port: clients, ID: 2, Src: client, Dst: netip.MustParseAddrPort("10.96.0.99:80"), Proto: rule.UDP},
			{Port: clients, ID: 1, Src: client, Dst: web, Proto: rule.TCP, Flags: 2},
		})
		select {
		case <-traced:
			sent = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err != nil || len(packets) != 1 || seen < 1 {
		t.Fatalf("%d of %d packets: %v", len(packets), seen, err)
	}
	got := packets[0]
	if got.Protocol != "TCP" || got.Source != client.String() || got.Destination != web.String() || got.LeftDestination != "10.1.1.3:8080" && got.LeftDestination != "10.1.1.4:8080" ||
		got.Verdict != "leaves through pg1" {
		t.Errorf("%+v", got)
	}
	for _, s := range got.Steps {
		if s.Words == "" {
			t.Errorf("no words for the node %s", s.Node)
		}
	}
	if text, err := command(ctx, vpp, "show trace max 1"); err != nil || len(Parse(text)) > 0 {
		t.Errorf("the trace was not cleared: %v %s", err, text)
	}
	// Ctrl-C: what was captured comes back, and the trace is cleared
	interrupted, interrupt := context.WithCancel(ctx)
	options.Most, options.Match = 1000, func(*Packet) bool { interrupt(); return true }
	traced = make(chan struct{})
	go func() {
		defer close(traced)
		packets, _, err = Run(interrupted, vpp, options)
	}()
	for sent := false; !sent; {
		g.Exchange(t, []realvpp.Packet{{Port: clients, ID: 1, Src: client, Dst: web, Proto: rule.TCP, Flags: 2}})
		select {
		case <-traced:
			sent = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err != nil || len(packets) == 0 {
		t.Errorf("after Ctrl-C: %d packets, %v", len(packets), err)
	}
	if text, err := command(ctx, vpp, "show trace max 1"); err != nil || len(Parse(text)) > 0 {
		t.Errorf("the trace was not cleared after Ctrl-C: %v %s", err, text)
	}
	// a trace that another user has armed, and that has no packets, is still armed afterwards
	if _, err := command(ctx, vpp, "trace add pg-input 5"); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	_, seen, err = Run(short, vpp, options)
	stop()
	g.Exchange(t, slices.Repeat([]realvpp.Packet{{Port: clients, ID: 4, Src: client, Dst: web, Proto: rule.TCP, Flags: 2}}, 10))
	if text, failed := command(ctx, vpp, "show trace max 100"); err != nil || failed != nil || seen != 0 || len(Parse(text)) != 5 {
		t.Errorf("armed by another user: %d seen, %v; %d packets traced afterwards, %v", seen, err, len(Parse(text)), failed)
	}
	if _, err := command(ctx, vpp, "clear trace"); err != nil {
		t.Fatal(err)
	}
	// packets of another user stay
	if _, err := command(ctx, vpp, "trace add pg-input 5"); err != nil {
		t.Fatal(err)
	}
	g.Exchange(t, []realvpp.Packet{{Port: clients, ID: 3, Src: client, Dst: web, Proto: rule.TCP, Flags: 2}})
	if _, _, err := Run(ctx, vpp, options); !errors.Is(err, ErrInUse) {
		t.Errorf("another user: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
