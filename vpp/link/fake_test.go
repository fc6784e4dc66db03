package link

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/codec"
)

// fakeVPP is a small VPP behind GoVPP's adapter seam: control plane messages, LB mappings without
// semantics of packets, interface events and one paged message. It answers in order, from a
// goroutine per connection, like VPP. Its zero value is not usable.
type fakeVPP struct {
	mu     sync.Mutex
	lookup time.Duration // how long it takes to look a number up
	// pid and offset change with every start: the process, and where its message numbers begin.
	pid    uint32
	offset uint16
	// stopped means that the socket is closed.
	stopped bool
	// missing names messages (without CRC) that this VPP does not have.
	missing map[string]bool
	rows    map[uint16]nat44_ed.Nat44AddDelLbStaticMapping
	// outputs are the interfaces that the paged message lists, pageSize at a time.
	outputs  []uint32
	pageSize int
	conns    map[*fakeConn]bool
	// hung is not nil while VPP does not take requests; closing it wakes VPP.
	hung chan struct{}
	// fault may change or swallow what is sent for a request; it is called with the replies that
	// VPP would send.
	fault func(c *fakeConn, req api.Message, frames [][]byte) [][]byte
	// peak is the largest number of requests that waited for VPP at one time; adds counts the
	// mappings that were asked for.
	peak, adds int
	// seen counts the mappings that were asked for by port, over all starts.
	seen map[uint16]int
	// pace is how long VPP works on each request.
	pace time.Duration
	// pings counts control_ping, subscriptions want_interface_events.
	pings, subscriptions int
}

func newFakeVPP() *fakeVPP {
	return &fakeVPP{
		pid: 100, offset: 20, pageSize: 2,
		missing: map[string]bool{}, seen: map[uint16]int{}, rows: map[uint16]nat44_ed.Nat44AddDelLbStaticMapping{}, conns: map[*fakeConn]bool{},
	}
}

// adapter makes a transport to this VPP, as Config.transport does.
func (v *fakeVPP) adapter() transport {
	return &fakeConn{vpp: v, in: make(chan []byte, 1<<16), closed: make(chan struct{})}
}

// crash ends VPP: every connection is at its end, writes fail, state is lost.
func (v *fakeVPP) crash() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped = true
	clear(v.rows)
	for c := range v.conns {
		c.end()
	}
	clear(v.conns)
}

// restart starts VPP again, with other message numbers and another process id.
func (v *fakeVPP) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped, v.pid, v.offset = false, v.pid+1, v.offset+7
}

// hang stops VPP from taking requests until the returned function is called.
func (v *fakeVPP) hang() (wake func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	gate := make(chan struct{})
	v.hung = gate
	return func() {
		v.mu.Lock()
		v.hung = nil
		v.mu.Unlock()
		close(gate)
	}
}

// setFault sets the fault hook.
func (v *fakeVPP) setFault(f func(c *fakeConn, req api.Message, frames [][]byte) [][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fault = f
}

// event sends an interface event to every subscriber.
func (v *fakeVPP) event() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.conns {
		if c.wantsEvents {
			c.toClient(v.encode(&interfaces.SwInterfaceEvent{SwIfIndex: 7}, 0))
		}
	}
}

// counters returns peak, adds, pings and subscriptions.
func (v *fakeVPP) counters() (peak, adds, pings, subscriptions int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peak, v.adds, v.pings, v.subscriptions
}

// names is the message table of every VPP here, in the order of the numbers.
var names = sync.OnceValue(func() []string {
	all := map[string]bool{}
	for _, family := range api.GetRegisteredMessages() {
		for key := range family {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
})

// prototypes holds every registered message by its key.
var prototypes = sync.OnceValue(func() map[string]api.Message {
	all := map[string]api.Message{}
	for _, family := range api.GetRegisteredMessages() {
		maps.Copy(all, family)
	}
	return all
})

// idOfMessage is the number of a message in this VPP.
func (v *fakeVPP) idOfMessage(msg api.Message) uint16 {
	i, _ := slices.BinarySearch(names(), msg.GetMessageName()+"_"+msg.GetCrcString())
	return uint16(i) + v.offset
}

// encode makes the frame of a message with a context.
func (v *fakeVPP) encode(msg api.Message, context uint32) []byte {
	data, err := codec.EncodeMsg(msg, v.idOfMessage(msg))
	if err != nil {
		panic(err)
	}
	at := 2
	if msg.GetMessageType() == api.RequestMessage {
		at = 6
	}
	binary.BigEndian.PutUint32(data[at:], context)
	return data
}

// decode reads a request; nil means that VPP drops it without an answer.
func (v *fakeVPP) decode(data []byte) api.Message {
	i := int(binary.BigEndian.Uint16(data)) - int(v.offset)
	if i < 0 || i >= len(names()) {
		return nil
	}
	msg := newIncoming(prototypes()[names()[i]], 0)
	req, err := msg.decode(data)
	if err != nil {
		return nil
	}
	return req
}

// answer executes a request and returns the frames that VPP sends for it.
func (v *fakeVPP) answer(c *fakeConn, req api.Message, context uint32) [][]byte {
	var out [][]byte
	say := func(msg api.Message) { out = append(out, v.encode(msg, context)) }
	switch m := req.(type) {
	case *memclnt.ControlPing:
		v.pings++
		say(&memclnt.ControlPingReply{VpePID: v.pid})
	case *vpe.ShowVersion:
		say(&vpe.ShowVersionReply{Version: "25.10-fake"})
	case *interfaces.WantInterfaceEvents:
		v.subscriptions++
		reply := &interfaces.WantInterfaceEventsReply{}
		if c.wantsEvents {
			reply.Retval = int32(api.INVALID_REGISTRATION)
		}
		c.wantsEvents = true
		say(reply)
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		say(&nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: v.mapping(m)})
	case *nat44_ed.Nat44LbStaticMappingDump:
		for _, port := range slices.Sorted(maps.Keys(v.rows)) {
			row := v.rows[port]
			say(&nat44_ed.Nat44LbStaticMappingDetails{ExternalAddr: row.ExternalAddr, ExternalPort: port, Locals: row.Locals, Tag: row.Tag})
		}
	case *nat44_ed.Nat44EdOutputInterfaceGet:
		v.page(m.Cursor, say)
	}
	return out
}

// mapping adds or deletes an LB mapping.
func (v *fakeVPP) mapping(m *nat44_ed.Nat44AddDelLbStaticMapping) int32 {
	v.adds++
	v.seen[m.ExternalPort]++
	_, exists := v.rows[m.ExternalPort]
	switch {
	case m.IsAdd && exists:
		return int32(api.VALUE_EXIST)
	case !m.IsAdd && !exists:
		return int32(api.NO_SUCH_ENTRY)
	case m.IsAdd:
		v.rows[m.ExternalPort] = *m
	default:
		delete(v.rows, m.ExternalPort)
	}
	return 0
}

// page lists the output interfaces from cursor on.
func (v *fakeVPP) page(cursor uint32, say func(api.Message)) {
	end := min(int(cursor)+v.pageSize, len(v.outputs))
	for _, index := range v.outputs[min(int(cursor), end):end] {
		say(&nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: interfaceIndex(index)})
	}
	reply := &nat44_ed.Nat44EdOutputInterfaceGetReply{Cursor: uint32(end)}
	if end < len(v.outputs) {
		reply.Retval = retvalAgain
	} else if len(v.outputs) > 0 {
		reply.Cursor = none
	}
	say(reply)
}

// fakeConn is one connection to a fakeVPP.
type fakeConn struct {
	vpp    *fakeVPP
	notify adapter.MsgCallback
	in     chan []byte
	closed chan struct{}
	once   sync.Once
	server sync.WaitGroup

	// Guarded by vpp.mu.
	wantsEvents bool
	waiting     int
}

// Connect fails when the socket is closed.
func (c *fakeConn) Connect() error {
	c.vpp.mu.Lock()
	defer c.vpp.mu.Unlock()
	if c.vpp.stopped {
		return syscall.ECONNREFUSED
	}
	c.vpp.conns[c] = true
	c.server.Go(c.serve)
	return nil
}

// end is a closed connection as the peer sees it.
func (c *fakeConn) end() { c.once.Do(func() { close(c.closed) }) }

// Disconnect ends the connection from the client's side.
func (c *fakeConn) Disconnect() error {
	c.end()
	c.server.Wait()
	c.vpp.mu.Lock()
	defer c.vpp.mu.Unlock()
	delete(c.vpp.conns, c)
	return nil
}

// GetMsgID looks a number up.
func (c *fakeConn) GetMsgID(name, crc string) (uint16, error) {
	c.vpp.mu.Lock()
	if pause := c.vpp.lookup; pause > 0 {
		c.vpp.mu.Unlock()
		time.Sleep(pause)
		c.vpp.mu.Lock()
	}
	defer c.vpp.mu.Unlock()
	i, ok := slices.BinarySearch(names(), name+"_"+crc)
	if !ok || c.vpp.missing[name] {
		return 0, &adapter.UnknownMsgError{MsgName: name, MsgCrc: crc}
	}
	return uint16(i) + c.vpp.offset, nil
}

// SendMsg hands a request to VPP.
func (c *fakeConn) SendMsg(context uint32, data []byte) error {
	select {
	case <-c.closed:
		return syscall.EPIPE
	default:
	}
	data = slices.Clone(data)
	binary.BigEndian.PutUint32(data[6:], context)
	c.vpp.mu.Lock()
	c.waiting++
	c.vpp.peak = max(c.vpp.peak, c.waiting)
	c.vpp.mu.Unlock()
	select {
	case c.in <- data:
		return nil
	default:
		return errors.New("fake: socket buffer is full, a real write would block")
	}
}

// listen sets the receiver. The end of the stream is not reported, but seen by the next write.
func (c *fakeConn) listen(receive adapter.MsgCallback, _ func(error)) { c.notify = receive }

func (*fakeConn) has(string) bool { return false }
func (*fakeConn) flush() error    { return nil }
func (*fakeConn) abort()          {}

// toClient passes frames to the client from another goroutine, as a socket does; vpp.mu is held.
func (c *fakeConn) toClient(frames ...[]byte) {
	c.server.Go(func() { c.send(frames) })
}

// send passes frames to the client.
func (c *fakeConn) send(frames [][]byte) {
	for _, frame := range frames {
		select {
		case <-c.closed:
			return
		default:
		}
		// The buffer of the real client is larger than a short frame and is used again for the next
		// one.
		var buf [64]byte
		id := binary.BigEndian.Uint16(append(buf[:0], frame...)[:2])
		c.notify(id, frame)
		for i := range frame {
			frame[i] = 0xEE
		}
	}
}

// serve executes requests in order.
func (c *fakeConn) serve() {
	for {
		select {
		case <-c.closed:
			return
		case data := <-c.in:
			if !c.awake() {
				return
			}
			c.send(c.execute(data))
		}
	}
}

// awake waits until VPP does not hang; false means that the connection is over.
func (c *fakeConn) awake() bool {
	c.vpp.mu.Lock()
	gate, pace := c.vpp.hung, c.vpp.pace
	c.vpp.mu.Unlock()
	if pace > 0 {
		select {
		case <-time.After(pace):
		case <-c.closed:
			return false
		}
	}
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-c.closed:
		return false
	}
}

// execute runs one request against the model.
func (c *fakeConn) execute(data []byte) [][]byte {
	v := c.vpp
	v.mu.Lock()
	defer v.mu.Unlock()
	c.waiting--
	req := v.decode(data)
	if req == nil {
		return nil
	}
	frames := v.answer(c, req, binary.BigEndian.Uint32(data[6:]))
	if v.fault != nil {
		frames = v.fault(c, req, frames)
	}
	return frames
}

// quietLog is a logger for tests that do not look at it.
func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
