package rendertest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// errBroken is the cause of an answer that was lost.
var errBroken = errors.New("connection broke")

// Wire is a link.Caller without a socket: a simulated VPP executes requests at once. It keeps the promises of link.Caller, also those about what is
// known when a connection breaks.
type Wire struct {
	// VPP is at the other end.
	VPP *simulator.VPP
	// Up says that there is a connection; Session counts them.
	Up      bool
	Session uint64
	// Writes counts requests that change VPP, and Sent all requests by name.
	Writes int
	Sent   map[string]int
	// Routine counts dumps that are drift checks, by name.
	Routine map[string]int
	// Refuse answers a request that changes VPP; nil = VPP does.
	Refuse func(api.Message) error
	// After sees every request that changed VPP; nil = it is not called.
	After func(api.Message)
	// Unreadable ends every dump of these messages, by the beginning of the name; "" = none.
	Unreadable string
	// Lacks is the beginning of the names of messages that VPP does not know; "" = none.
	Lacks string
	// BreakAt is after how many requests the connection breaks: that one is executed, its answer is lost. 0 = it does not.
	BreakAt int

	boots  int
	reason string
}

// newWire connects to a VPP with an uplink and four pods.
func newWire(now func() time.Time) *Wire {
	w := &Wire{Sent: map[string]int{}, Routine: map[string]int{}}
	w.VPP = simulator.New(simulator.Options{OnBoot: topology, Clock: now})
	w.Connect()
	return w
}

func topology(v *simulator.VPP) {
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

// Boot is the identity of the connected VPP; "" = there is none.
func (w *Wire) Boot() string {
	if !w.Up {
		return ""
	}
	return fmt.Sprint("boot-", w.boots)
}

// Connect begins a session.
func (w *Wire) Connect() {
	w.Up, w.reason = true, ""
	w.Session++
}

// Disconnect ends the session; VPP goes on.
func (w *Wire) Disconnect() { w.Up, w.reason = false, "connection lost" }

// Crash kills VPP and starts it again, empty; the connection is lost.
func (w *Wire) Crash() {
	w.Disconnect()
	w.boots++
	w.VPP.Crash()
	if err := w.VPP.Restart(); err != nil {
		panic(err)
	}
}

// RefuseAfter has every change refused after the next n.
func (w *Wire) RefuseAfter(n int, err error) {
	w.Refuse = func(api.Message) error {
		if n--; n >= 0 {
			return nil
		}
		return err
	}
}

// Do satisfies link.Caller.
func (w *Wire) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	if !w.Up {
		for i := range results {
			results[i].Err = link.ErrNotSent
		}
		return results, link.ErrDown
	}
	for i, req := range reqs {
		if !w.Up {
			results[i].Err = fmt.Errorf("%w: %s", link.ErrNotSent, req.GetMessageName())
			continue
		}
		results[i] = w.do(req)
	}
	return results, nil
}

// do executes one request.
func (w *Wire) do(req api.Message) link.Result {
	if err := link.Check(req); err != nil {
		return link.Result{Err: err}
	}
	w.Sent[req.GetMessageName()]++
	if changes(req) {
		w.Writes++
		if w.Refuse != nil {
			if err := w.Refuse(req); err != nil {
				return link.Result{Err: err}
			}
		}
	}
	if w.unknown(req) {
		return link.Result{Err: fmt.Errorf("%w: %s", link.ErrUnsupported, req.GetMessageName())}
	}
	replies, err := w.VPP.Exec(req)
	if w.After != nil && changes(req) {
		w.After(req)
	}
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("%d replies", len(replies))
	}
	if w.BreakAt > 0 {
		if w.BreakAt--; w.BreakAt == 0 {
			w.Disconnect()
			err = errBroken
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

// unknown reports whether this VPP does not know a message.
func (w *Wire) unknown(req api.Message) bool {
	return w.Lacks != "" && strings.HasPrefix(req.GetMessageName(), w.Lacks)
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
func (w *Wire) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	name := req.GetMessageName()
	switch {
	case !w.Up:
		return link.ErrDown
	case w.Unreadable != "" && strings.HasPrefix(name, w.Unreadable):
		return &link.RetvalError{Message: name, Retval: -1}
	case w.unknown(req):
		return fmt.Errorf("%w: %s", link.ErrUnsupported, name)
	}
	if w.Sent[name]++; link.IsRoutine(ctx) {
		w.Routine[name]++
	}
	details, err := w.VPP.Exec(req)
	if errors.Is(err, simulator.ErrUnknownMessage) {
		return fmt.Errorf("%w: %s", link.ErrUnsupported, name)
	}
	for _, d := range details {
		if strings.HasSuffix(d.GetMessageName(), "_details") {
			each(d)
		}
	}
	return err
}

// Rows lists the NAT44 rows of ours in VPP.
func (w *Wire) Rows() []string {
	var rows []string
	for _, row := range w.VPP.Rows() {
		if strings.Contains(row, "troupe/") {
			rows = append(rows, row)
		}
	}
	return rows
}

// VIPs are the frontends of those rows.
func (w *Wire) VIPs() []string {
	var vips []string
	for _, row := range w.Rows() {
		vip, _, _ := strings.Cut(row, " ")
		vips = append(vips, vip)
	}
	return vips
}

// Outside is a connection of another client to the same VPP, which is not counted and has no faults.
func (w *Wire) Outside() *Wire {
	return &Wire{VPP: w.VPP, Up: true, Sent: map[string]int{}, Routine: map[string]int{}}
}
