package actors

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// wire is a Link without a socket: requests are executed by a simulated VPP at once, so that it works in virtual time. It keeps the promises
// of link.Caller, also those about what is known when a connection breaks.
type wire struct {
	vpp *simulator.VPP

	mu         sync.Mutex
	state      *messages.LinkState
	told       chan struct{} // holds a token while Run has not reported the state
	writes     int           // requests that change VPP
	reads      int           // dumps of the rows for a reason
	checks     int           // and by the clock
	boots      int
	refuse     func(api.Message) error // nil = VPP decides; an error is the answer
	after      func(api.Message)       // sees every request that changed VPP, when it has; nil = nobody does
	bare       bool                    // VPP has no access lists
	unreadable error                   // what every dump of NAT ends with
	breakAt    int                     // this many requests until the connection breaks; 0 = it does not
}

const testNode = "n1"

// newWire connects to a VPP with an uplink and four pods.
func newWire() *wire {
	w := &wire{told: make(chan struct{}, 1), state: &messages.LinkState{Reason: "not connected yet"}}
	w.vpp = simulator.New(simulator.Options{OnBoot: testTopology})
	w.connect()
	return w
}

func testTopology(v *simulator.VPP) {
	_, err := v.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	err = errors.Join(err, v.DefaultRoute("uplink0", netip.MustParseAddr("192.168.16.254")))
	for i := byte(2); i <= 5; i++ {
		_, e := v.AddPod(fmt.Sprint("pod", i), netip.AddrFrom4([4]byte{10, 1, 1, i}))
		err = errors.Join(err, e)
	}
	if err != nil {
		panic(err)
	}
}

// refuseAfter has every change refused after the next n.
func (w *wire) refuseAfter(n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = func(api.Message) error {
		if n--; n >= 0 {
			return nil
		}
		return err
	}
}

// Run satisfies Link.
func (w *wire) Run(ctx context.Context, on func(*messages.LinkState)) error {
	report := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.state
		on(&messages.LinkState{Up: s.GetUp(), Boot: s.GetBoot(), Session: s.GetSession(), Version: s.GetVersion(), Reason: s.GetReason()})
	}
	report()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.told:
			report()
		}
	}
}

func (w *wire) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

// connect begins a session.
func (w *wire) connect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = &messages.LinkState{Up: true, Boot: fmt.Sprint("boot-", w.boots), Session: w.state.GetSession() + 1}
	w.tell()
}

// disconnect ends the session; VPP goes on.
func (w *wire) disconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down()
}

func (w *wire) down() {
	w.state = &messages.LinkState{Session: w.state.GetSession(), Reason: "connection lost"}
	w.tell()
}

// crash kills VPP and starts it again, empty; the connection is lost.
func (w *wire) crash() {
	w.disconnect()
	w.mu.Lock()
	w.boots++
	w.mu.Unlock()
	w.vpp.Crash()
	if err := w.vpp.Restart(); err != nil {
		panic(err)
	}
}

// breakAfter lets the connection break in the middle of what is sent: the request of that number is executed, its answer is lost.
func (w *wire) breakAfter(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakAt = n
}

// counts returns how often VPP was written to and its rows were read for a reason.
func (w *wire) counts() (writes, reads int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.reads
}

// Do satisfies link.Caller.
func (w *wire) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	results := make([]link.Result, len(reqs))
	if !w.state.GetUp() {
		for i := range results {
			results[i].Err = link.ErrNotSent
		}
		return results, link.ErrDown
	}
	for i, req := range reqs {
		if !w.state.GetUp() {
			results[i].Err = fmt.Errorf("%w: %s", link.ErrNotSent, req.GetMessageName())
			continue
		}
		results[i] = w.do(req)
	}
	return results, nil
}

// do executes one request. The lock is held.
func (w *wire) do(req api.Message) link.Result {
	if err := link.Check(req); err != nil {
		return link.Result{Err: err}
	}
	if changes(req) {
		w.writes++
		if w.refuse != nil {
			if err := w.refuse(req); err != nil {
				return link.Result{Err: err}
			}
		}
	}
	replies, err := w.vpp.Exec(req)
	if w.after != nil && changes(req) {
		w.after(req)
	}
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("%d replies", len(replies))
	}
	if w.breakAt > 0 {
		if w.breakAt--; w.breakAt == 0 {
			w.down()
			err = errors.New("connection broke")
		}
	}
	if err != nil {
		return link.Result{Err: fmt.Errorf("%w: %s: %w", link.ErrUnknown, req.GetMessageName(), err)}
	}
	if retval := reflect.ValueOf(replies[0]).Elem().FieldByName("Retval"); retval.IsValid() && retval.Int() != 0 {
		err = &link.RetvalError{Message: req.GetMessageName(), Retval: int32(retval.Int())}
	}
	return link.Result{Reply: replies[0], Err: err}
}

// changes reports whether a request changes VPP.
func changes(req api.Message) bool {
	name := req.GetMessageName()
	if name == "cli_inband" {
		return false // the guard of the link lets only commands pass that read
	}
	return !strings.Contains(name, "show") && !strings.Contains(name, "lookup") && !strings.HasSuffix(name, "_get") && !strings.HasSuffix(name, "_dump")
}

// Dump satisfies link.Caller.
func (w *wire) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	details, err := w.dump(req, link.IsRoutine(ctx))
	for _, d := range details {
		if strings.HasSuffix(d.GetMessageName(), "_details") {
			each(d)
		}
	}
	return err
}

func (w *wire) dump(req api.Message, routine bool) ([]api.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.state.GetUp() {
		return nil, link.ErrDown
	}
	if w.unreadable != nil && strings.HasPrefix(req.GetMessageName(), "nat44") {
		return nil, w.unreadable
	}
	if req.GetMessageName() == "nat44_lb_static_mapping_dump" {
		if routine {
			w.checks++
		} else {
			w.reads++
		}
	}
	if w.bare && strings.HasPrefix(req.GetMessageName(), "acl_") {
		return nil, link.ErrUnsupported
	}
	details, err := w.vpp.Exec(req)
	if errors.Is(err, simulator.ErrUnknownMessage) {
		err = link.ErrUnsupported
	}
	return details, err
}

// rows lists the rows of ours in VPP.
func (w *wire) rows() []string {
	var rows []string
	for _, row := range w.vpp.Rows() {
		if strings.Contains(row, "troupe/") {
			rows = append(rows, row)
		}
	}
	return rows
}
