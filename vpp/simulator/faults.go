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

	// Lose neither executes nor answers the request.
	Lose bool

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
	case f.Lose:
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
