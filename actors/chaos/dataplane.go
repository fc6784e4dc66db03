package chaos

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Properties of the simulated connection.
const (
	windowSize   = 16              // requests that are on their way at a time
	replyTimeout = 5 * time.Second // a request without an answer ends the session
	roundTrip    = 300 * time.Microsecond
)

// dataplane is a link to a simulated VPP: one stream of requests, executed in the order in which they were sent, in virtual time. It keeps
// the promises of link.Caller, above all those about what is known when a connection ends.
type dataplane struct {
	sim     *runtime.Sim
	vpp     *simulator.VPP
	session uint64
	up      bool
	reason  string
	boots   int
	version int // of what Run has to tell

	next, serving uint64 // tickets of the stream
	hung          bool
	late          []api.Message // sent to a VPP that hangs; it will execute them when it goes on

	cut    int // so many requests until the connection breaks, in the middle of a batch
	lose   int // so many answers get lost, each ends the session
	refuse int // so many changes are refused with an error

	writes, reads int
	watch         func(req api.Message, retval int32) // told every change
}

var (
	_ actors.Link = (*dataplane)(nil)
	_ link.Serial = (*dataplane)(nil)
)

// Serial satisfies link.Serial: only a function that may park can wait for VPP.
func (*dataplane) Serial() {}

func newDataplane(sim *runtime.Sim, topology func(*simulator.VPP)) *dataplane {
	d := &dataplane{sim: sim, watch: func(api.Message, int32) {}}
	d.vpp = simulator.New(simulator.Options{Clock: sim.Now, OnBoot: topology})
	d.connect()
	return d
}

// Run satisfies actors.Link.
func (d *dataplane) Run(ctx context.Context, on func(*messages.LinkState)) error {
	for told := -1; ; {
		d.sim.Park(func() bool { return ctx.Err() != nil || d.version != told })
		if ctx.Err() != nil {
			return nil
		}
		told = d.version
		on(&messages.LinkState{Up: d.up, Boot: d.boot(), Session: d.session, Reason: d.reason})
	}
}

func (d *dataplane) boot() string {
	if !d.up {
		return ""
	}
	return fmt.Sprint("boot-", d.boots)
}

// connect begins a session, if there is none and VPP works.
func (d *dataplane) connect() {
	if d.up || d.hung {
		return
	}
	d.up, d.reason = true, ""
	d.session++
	d.version++
}

// disconnect ends the session; VPP goes on.
func (d *dataplane) disconnect(reason string) {
	if d.up {
		d.up, d.reason = false, reason
		d.version++
	}
}

// crash kills VPP and starts it again, empty. The connection is lost.
func (d *dataplane) crash() error {
	d.disconnect("injected: VPP crashed")
	d.hung, d.late = false, nil
	d.boots++
	d.vpp.Crash()
	return d.vpp.Restart()
}

// hang makes VPP stop working; what it is sent it will do later. The link notices when an answer is overdue.
func (d *dataplane) hang() { d.hung = true }

// resume ends that.
func (d *dataplane) resume() {
	d.hung = false
	for _, req := range d.late {
		_, _ = d.execute(req) // nobody waits for the answer any more
	}
	d.late = nil
}

// Do satisfies link.Caller.
func (d *dataplane) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	if !d.up {
		fill(results, link.ErrNotSent)
		return results, link.ErrDown
	}
	session := d.session
	for i := 0; i < len(reqs); i += windowSize {
		end := min(i+windowSize, len(reqs))
		if ctx.Err() != nil || session != d.session || !d.up {
			fill(results[i:], link.ErrNotSent)
			break
		}
		d.send(session, reqs[i:end], results[i:end])
	}
	return results, nil
}

func fill(results []link.Result, err error) {
	for i := range results {
		results[i].Err = err
	}
}

// send puts requests into the stream and waits for their answers.
func (d *dataplane) send(session uint64, reqs []api.Message, results []link.Result) {
	leave := d.enter()
	defer leave()
	d.answer(session)
	for i, req := range reqs {
		if session != d.session || !d.up { // the session ended after they were sent
			if d.hung {
				d.late = append(d.late, reqs[i:]...)
			}
			fill(results[i:], fmt.Errorf("%w: %s: %s", link.ErrUnknown, req.GetMessageName(), d.reason))
			return
		}
		results[i] = d.do(req)
	}
}

// enter waits for everything that was sent before.
func (d *dataplane) enter() (leave func()) {
	ticket := d.next
	d.next++
	d.sim.Park(func() bool { return d.serving == ticket })
	return func() { d.serving++ }
}

// answer waits for VPP, which takes its time or hangs until the session is given up.
func (d *dataplane) answer(session uint64) {
	d.sim.Sleep(roundTrip, nil)
	if !d.hung {
		return
	}
	d.sim.Sleep(replyTimeout, func() bool { return !d.hung || session != d.session || !d.up })
	if d.hung && session == d.session && d.up {
		d.disconnect("injected: no answer in time")
	}
}

// do executes one request.
func (d *dataplane) do(req api.Message) link.Result {
	if err := link.Check(req); err != nil {
		return link.Result{Err: err}
	}
	if d.refuse > 0 && changes(req) {
		d.refuse--
		return link.Result{Err: &link.RetvalError{Message: req.GetMessageName(), Retval: int32(api.UNSPECIFIED)}}
	}
	reply, err := d.execute(req)
	if d.cut > 0 {
		if d.cut--; d.cut == 0 {
			d.disconnect("injected: the connection broke")
			err = errBroken
		}
	}
	if d.lose > 0 && changes(req) {
		d.lose--
		d.disconnect("injected: an answer got lost")
		err = errBroken
	}
	switch {
	case errors.Is(err, simulator.ErrUnknownMessage):
		return link.Result{Err: fmt.Errorf("%w: %s", link.ErrUnsupported, req.GetMessageName())}
	case err != nil:
		return link.Result{Err: fmt.Errorf("%w: %s: %w", link.ErrUnknown, req.GetMessageName(), err)}
	}
	if retval := retvalOf(reply); retval != 0 {
		return link.Result{Reply: reply, Err: &link.RetvalError{Message: req.GetMessageName(), Retval: retval}}
	}
	return link.Result{Reply: reply}
}

// execute hands a request to VPP.
func (d *dataplane) execute(req api.Message) (api.Message, error) {
	replies, err := d.vpp.Exec(req)
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("%d replies", len(replies))
	}
	if err != nil {
		return nil, err
	}
	if changes(req) {
		d.writes++
		d.watch(req, retvalOf(replies[0]))
	}
	return replies[0], nil
}

func retvalOf(reply api.Message) int32 {
	if f := reflect.ValueOf(reply).Elem().FieldByName("Retval"); f.IsValid() {
		return int32(f.Int())
	}
	return 0
}

// changes reports whether a request changes VPP.
func changes(req api.Message) bool {
	name := req.GetMessageName()
	return !strings.Contains(name, "show") && !strings.Contains(name, "lookup") && !strings.HasSuffix(name, "_get") && !strings.HasSuffix(name, "_dump")
}

// Dump satisfies link.Caller.
func (d *dataplane) Dump(_ context.Context, req api.Message, each func(api.Message)) error {
	if !d.up {
		return link.ErrDown
	}
	session := d.session
	leave := d.enter()
	defer leave()
	d.answer(session)
	if session != d.session || !d.up {
		return fmt.Errorf("%w: %s: %s", link.ErrUnknown, req.GetMessageName(), d.reason)
	}
	if req.GetMessageName() == rowsDump {
		d.reads++
	}
	details, err := d.vpp.Exec(req)
	if errors.Is(err, simulator.ErrUnknownMessage) {
		return fmt.Errorf("%w: %s", link.ErrUnsupported, req.GetMessageName())
	}
	for _, m := range details {
		if strings.HasSuffix(m.GetMessageName(), "_details") {
			each(m)
		}
	}
	return err
}

// rowsDump is the message that reads all rows.
const rowsDump = "nat44_lb_static_mapping_dump"
