package virtual

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// errInjected is the cause of an answer that an injected fault suppresses.
var errInjected = errors.New("injected: broken")

// Properties of the simulated connection.
const (
	windowSize   = 16              // requests that are on their way at a time
	replyTimeout = 5 * time.Second // a request without an answer ends the connection
)

// RoundTrip is how long VPP takes to answer: VPP 25.10 takes 15 to 30 µs.
const RoundTrip = 20 * time.Microsecond

// Time lets functions wait in virtual time; runtime.Sim of package actors/runtime implements it.
type Time interface {
	// Now is the virtual time.
	Now() time.Time
	// Park lets the caller wait until ready reports true.
	Park(ready func() bool)
	// Sleep lets the caller wait for a while, or until over, which may be nil, reports true.
	Sleep(d time.Duration, over func() bool)
}

// Stream is a link to a simulated VPP: one stream of requests, executed in the order in which they
// were sent, in virtual time. It has the semantics of link.Caller, also about the outcome of
// requests when a connection ends. It belongs to the goroutine of the simulation.
type Stream struct {
	// The simulation sets these fields at any time.

	// VPP is the simulated VPP.
	VPP *simulator.VPP
	// Cut breaks the connection after this number of requests, in the middle of a batch; 0 =
	// never.
	Cut int
	// Lose is the number of answers to changes to lose; each ends the connection.
	Lose int
	// Refuse is the number of changes to refuse with an error. Changes of rows for which Spared
	// returns true are not refused; nil = none is spared.
	Refuse int
	Spared func(RowChange) bool
	// Veto answers a request or a dump with an error in VPP's place; nil, and nil as its
	// answer, mean that VPP decides.
	Veto func(api.Message) error
	// After sees every change that VPP has executed; nil = it is not called.
	After func(api.Message)
	// Counters, for the simulation. Writes counts changes of VPP, Reads dumps of the rows,
	// Checks the routine ones among these (link.Routine).
	Writes, Reads, Checks int

	// The state of the connection.
	time       Time
	connection uint64
	up         bool
	since      time.Time // of the last Connect that began a connection
	reason     string
	boots      int
	version    int // of the state that Run reports

	// The stream of requests.
	next, serving uint64 // tickets of the stream
	hung          bool
	late          []api.Message // sent while VPP hangs; VPP executes them when it goes on
	changed       func(RowChange)
}

var _ link.Serial = (*Stream)(nil)

// Serial satisfies link.Serial: only the goroutine of the simulation can park until VPP answers.
func (*Stream) Serial() {}

// New makes a stream to a new simulated VPP, whose topology is created at every start. changed,
// which may be nil, is called after every change of a row that a request of this stream made.
func New(time Time, topology func(*simulator.VPP), changed func(RowChange)) *Stream {
	d := &Stream{time: time, changed: changed}
	d.VPP = simulator.New(simulator.Options{Clock: time.Now, OnBoot: topology})
	d.Connect()
	return d
}

// Run reports every change of the connection until ctx ends, as link.Link does. Of several changes
// in the same instant it reports the last one.
func (d *Stream) Run(ctx context.Context, on func(*messages.LinkState)) error {
	for told := -1; ; {
		d.time.Park(func() bool { return ctx.Err() != nil || d.version != told })
		if ctx.Err() != nil {
			return nil
		}
		told = d.version
		on(d.State())
	}
}

// State is the state of the connection, as Run reports it.
func (d *Stream) State() *messages.LinkState {
	return &messages.LinkState{Up: d.up, Boot: d.Boot(), Session: d.connection, Reason: d.reason}
}

// Since is when the last connection began.
func (d *Stream) Since() time.Time { return d.since }

// Boots is how often VPP has crashed.
func (d *Stream) Boots() int { return d.boots }

// Boot is the boot identity of the connected VPP; "" = there is none.
func (d *Stream) Boot() string {
	if !d.up {
		return ""
	}
	return fmt.Sprint("boot-", d.boots)
}

// Connect begins a connection, if there is none and VPP answers. Faults end connections, and the
// simulation decides when the link reconnects.
func (d *Stream) Connect() {
	if d.up || d.hung {
		return
	}
	d.up, d.reason, d.since = true, "", d.time.Now()
	d.connection++
	d.version++
}

// Disconnect ends the connection; VPP keeps its state, as after a broken connection.
func (d *Stream) Disconnect(reason string) {
	if d.up {
		d.up, d.reason = false, reason
		d.version++
	}
}

// Crash ends VPP and starts it again without any state. The connection ends, and the next one has
// another boot identity.
func (d *Stream) Crash() error {
	d.Disconnect("injected: VPP crashed")
	d.hung, d.late = false, nil
	d.boots++
	d.VPP.Crash()
	return d.VPP.Restart()
}

// Hang stops VPP, which executes the requests that are sent meanwhile only after Resume. The link
// detects it when an answer is overdue.
func (d *Stream) Hang() { d.hung = true }

// Resume ends Hang: VPP executes the requests that were sent meanwhile.
func (d *Stream) Resume() {
	d.hung = false
	for _, req := range d.late {
		_, _ = d.execute(req) // the caller has stopped waiting
	}
	d.late = nil
}

// Do satisfies link.Caller.
func (d *Stream) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	if !d.up {
		fill(results, link.ErrNotSent)
		return results, link.ErrDown
	}
	connection := d.connection
	for i := 0; i < len(reqs); i += windowSize {
		end := min(i+windowSize, len(reqs))
		if ctx.Err() != nil || connection != d.connection || !d.up {
			fill(results[i:], link.ErrNotSent)
			break
		}
		d.send(connection, reqs[i:end], results[i:end])
	}
	return results, nil
}

func fill(results []link.Result, err error) {
	for i := range results {
		results[i].Err = err
	}
}

// send sends requests in the order of the stream and waits for their answers.
func (d *Stream) send(connection uint64, reqs []api.Message, results []link.Result) {
	leave := d.enter()
	defer leave()
	d.answer(connection)
	for i, req := range reqs {
		if connection != d.connection || !d.up { // the connection ended after they were sent
			// A hung VPP has the requests in its socket and executes them later,
			// although the caller gets no answer.
			if d.hung {
				d.late = append(d.late, reqs[i:]...)
			}
			fill(results[i:], fmt.Errorf("%w: %s: %s", link.ErrUnknown, req.GetMessageName(), d.reason))
			return
		}
		results[i] = d.do(req)
	}
}

// enter waits for all earlier requests, as VPP executes one at a time.
func (d *Stream) enter() (leave func()) {
	ticket := d.next
	d.next++
	d.time.Park(func() bool { return d.serving == ticket })
	return func() { d.serving++ }
}

// answer waits for one round trip, or, while VPP hangs, until the connection ends.
func (d *Stream) answer(connection uint64) {
	d.time.Sleep(RoundTrip, nil)
	if !d.hung {
		return
	}
	d.time.Sleep(replyTimeout, func() bool { return !d.hung || connection != d.connection || !d.up })
	if d.hung && connection == d.connection && d.up {
		d.Disconnect("injected: no answer in time")
	}
}

// do executes one request with the faults that are due. Cut and Lose act after the execution, so
// that the caller cannot know the outcome.
func (d *Stream) do(req api.Message) link.Result {
	if err := link.Check(req); err != nil {
		return link.Result{Err: err}
	}
	if d.Veto != nil {
		if err := d.Veto(req); err != nil {
			return link.Result{Err: err}
		}
	}
	if d.Refuse > 0 && Changes(req) && !d.spared(req) {
		d.Refuse--
		if c, is := RowChangeOf(req); is && d.changed != nil {
			c.Refused = true
			d.changed(c)
		}
		return link.Result{Err: &link.RetvalError{Message: req.GetMessageName(), Retval: int32(api.UNSPECIFIED)}}
	}
	reply, err := d.execute(req)
	if d.Cut > 0 {
		if d.Cut--; d.Cut == 0 {
			d.Disconnect("injected: the connection broke")
			err = errInjected
		}
	}
	if d.Lose > 0 && Changes(req) {
		d.Lose--
		d.Disconnect("injected: an answer got lost")
		err = errInjected
	}
	return outcome(req, reply, err)
}

// execute passes a request to VPP, counts writes and reports changes of rows.
func (d *Stream) execute(req api.Message) (api.Message, error) {
	reply, err := execute(d.VPP, req)
	if err == nil && Changes(req) {
		d.Writes++
		if d.After != nil {
			d.After(req)
		}
		if change, is := RowChangeOf(req); is && d.changed != nil && retvalOf(reply) == 0 {
			d.changed(change)
		}
	}
	return reply, err
}

func retvalOf(reply api.Message) int32 {
	if f := reflect.ValueOf(reply).Elem().FieldByName("Retval"); f.IsValid() {
		return int32(f.Int())
	}
	return 0
}

// Changes reports whether a request changes VPP.
func Changes(req api.Message) bool {
	name := req.GetMessageName()
	if name == "cli_inband" {
		return false // the link sends only commands that read
	}
	return !slices.ContainsFunc([]string{"show", "lookup", "_get", "_dump", "_is_enabled"}, func(word string) bool { return strings.Contains(name, word) })
}

// Dump satisfies link.Caller.
func (d *Stream) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	if !d.up {
		return link.ErrDown
	}
	connection := d.connection
	leave := d.enter()
	defer leave()
	d.answer(connection)
	if connection != d.connection || !d.up {
		return fmt.Errorf("%w: %s: %s", link.ErrUnknown, req.GetMessageName(), d.reason)
	}
	if req.GetMessageName() == rowsDump {
		d.Reads++
		if link.IsRoutine(ctx) {
			d.Checks++
		}
	}
	if d.Veto != nil {
		if err := d.Veto(req); err != nil {
			return err
		}
	}
	return d.Reader().Dump(ctx, req, each)
}

// rowsDump is the message that reads all rows.
const rowsDump = "nat44_lb_static_mapping_dump"
