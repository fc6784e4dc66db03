package simulator

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
