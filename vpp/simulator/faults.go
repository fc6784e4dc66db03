package simulator

import (
	"time"

	"go.fd.io/govpp/api"
)

// Fault is a disturbance of the API: it applies to requests of one message name, or of every name.
type Fault struct {
	// Message is the VPP name of the request ("nat44_add_del_address_range"); empty means every
	// request, including the handshake and pings.
	Message string

	// Spared are requests that the fault never strikes; nil = none. It is called while VPP is
	// locked, and must not use it.
	Spared func(request api.Message) bool

	// Skip lets that many matching requests pass before the fault strikes.
	Skip int

	// Times is how often the fault strikes; 0 means until it is removed.
	Times int

	// Delay holds the request back before it is executed. Requests of other connections
	// overtake it.
	Delay time.Duration

	// Retval answers with this return code instead of executing the request. It has no effect
	// on requests whose reply carries none.
	Retval int32

	// Swallow executes the request and loses the reply.
	Swallow bool

	// CloseMidFrame executes the request, sends half of the reply and closes the connection.
	CloseMidFrame bool

	// Disconnect closes the connection instead of executing the request.
	Disconnect bool

	// Crash crashes VPP instead of executing the request.
	Crash bool
}

// armedFault is a fault with its remaining counts.
type armedFault struct {
	Fault
}

// Inject arms a fault. Faults are tried in the order in which they were injected; the first one
// that strikes wins. The returned function disarms it.
func (v *VPP) Inject(f Fault) (remove func()) {
	armed := &armedFault{Fault: f}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, armed)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.disarm(armed)
	}
}

// ClearFaults disarms every fault.
func (v *VPP) ClearFaults() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = nil
}

// takeFault returns the fault that strikes a request of the given name. mu is held.
func (v *VPP) takeFault(name string, request api.Message) Fault {
	for _, f := range v.faults {
		if f.Message != "" && f.Message != name || f.Spared != nil && f.Spared(request) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		struck := f.Fault
		if f.Times == 1 {
			v.disarm(f)
		} else if f.Times > 1 {
			f.Times--
		}
		return struck
	}
	return Fault{}
}

// disarm removes a fault. mu is held.
func (v *VPP) disarm(f *armedFault) {
	for i, other := range v.faults {
		if other == f {
			v.faults = append(v.faults[:i:i], v.faults[i+1:]...)
			return
		}
	}
}

// before strikes ahead of the execution and reports whether that was all. The model is locked.
func (f Fault) before(v *VPP, c *client) bool {
	switch {
	case f.Crash:
		v.crash("injected fault")
	case f.Disconnect:
		c.shut()
	default:
		return false
	}
	return true
}

// DisconnectClients closes every API connection and leaves VPP running.
func (v *VPP) DisconnectClients() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.clients {
		c.shut()
	}
}

// pollFiles is how many ready files VPP 25.10 takes from epoll at once. With as many, it polls
// again before anything else runs (vlib_file_poll).
const pollFiles = 16

// Hang makes VPP stop serving: connections are accepted, nothing is executed or answered, as when
// the main thread is busy or stuck. Requests that arrive meanwhile are executed after Resume, and a
// client that disconnects stays until then. With 16 clients that have disconnected or wait for an
// answer VPP is lost: see Lost.
func (v *VPP) Hang() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hung == nil && !v.closed {
		v.hung = make(chan struct{})
	}
}

// Resume ends Hang, unless VPP is lost.
func (v *VPP) Resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.lost {
		v.resumeLocked()
	}
}

// Lost reports whether VPP polls its sockets for ever, because at least 16 of them were ready while
// its main thread was busy. Such a VPP accepts connections, answers nothing, and without workers
// forwards nothing. Only Crash and Restart end it.
func (v *VPP) Lost() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost
}

// Accepted returns how many API connections VPP has accepted, over all incarnations.
func (v *VPP) Accepted() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return int(v.accepted)
}

// resumeLocked lets the waiting requests go on and forgets the clients that disconnected meanwhile.
// mu is held.
func (v *VPP) resumeLocked() {
	if v.hung == nil {
		return
	}
	close(v.hung)
	v.hung, v.lost = nil, false
	for _, c := range v.clients {
		if c.dead {
			v.forgetLocked(c)
		}
	}
}

// readable marks the socket of a client as ready while VPP is busy, and counts the ready ones. mu
// is held.
func (v *VPP) readable(c *client) {
	c.ready = true
	ready := 0
	for _, other := range v.clients {
		if other.ready {
			ready++
		}
	}
	if ready >= pollFiles && !v.lost {
		v.lost = true
		v.log.Warn("simulated vpp polls its sockets for ever", "ready", ready)
	}
}
