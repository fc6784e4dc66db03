package link

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) {
	Quiet(quietLog())
	goleak.VerifyTestMain(m)
}

// interfaceIndex converts an index.
func interfaceIndex(i uint32) interface_types.InterfaceIndex {
	return interface_types.InterfaceIndex(i)
}

// add is a valid request that adds the mapping of a port.
func add(port uint16) *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, ExternalPort: port, Protocol: 6, Tag: "troupe/test",
		Locals: []nat44_ed.Nat44LbAddrPort{{Port: 1, Probability: 7}, {Port: 2, Probability: 7}},
	}
}

// adds is a batch of n different mappings.
func adds(n int) []api.Message {
	reqs := make([]api.Message, n)
	for i := range reqs {
		reqs[i] = add(uint16(i + 1))
	}
	return reqs
}

// running is a Link whose Run is at work, with everything it reported.
type running struct {
	*Link
	stop func()

	mu     sync.Mutex
	states []*messages.LinkState
}

// start runs a link to a fake VPP inside a synctest bubble.
func start(t *testing.T, cfg Config) *running {
	t.Helper()
	if cfg.Stamp == nil {
		cfg.Stamp = func() (string, error) { return "", nil } // it has no socket
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Link: New(cfg, quietLog())}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.Run(ctx, r.record); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	r.stop = func() {
		cancel()
		<-ended
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	return r
}

// record keeps a reported state.
func (r *running) record(state *messages.LinkState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, state)
}

// last returns the state reported last.
func (r *running) last() *messages.LinkState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return nil
	}
	return r.states[len(r.states)-1]
}

// history returns all reported states.
func (r *running) history() []*messages.LinkState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*messages.LinkState(nil), r.states...)
}

// bubble runs a test with a fake VPP and a connected link under fake time.
func bubble(t *testing.T, cfg Config, test func(t *testing.T, vpp *fakeVPP, l *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		cfg := cfg
		cfg.transport = vpp.adapter
		l := start(t, cfg)
		defer l.stop()
		synctest.Wait()
		if !l.last().GetUp() {
			t.Fatalf("not connected: %v", l.last())
		}
		test(t, vpp, l)
	})
}

// codes returns the return values of results, with 1000 for an unknown outcome and 2000 for a
// request that was not sent.
func codes(results []Result) []int32 {
	out := make([]int32, len(results))
	for i, r := range results {
		out[i] = codeOf(r.Err)
	}
	return out
}

const (
	codeUnknown = 1000
	codeNotSent = 2000
	codeOther   = 3000
)

// deadline is a context that ends after d.
func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
