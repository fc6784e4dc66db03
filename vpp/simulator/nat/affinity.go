package nat

import "net/netip"

// affinityKey is a client of a service.
type affinityKey struct {
	client  netip.Addr
	service netip.AddrPort
	proto   uint8
}

// affinity binds a client to a backend, by the index that the backend has (or had) in the mapping.
type affinity struct {
	index   uint8 // 8 bits as in VPP
	refs    int   // sessions that hold it
	expire  float64
	seconds uint32
	owner   *Mapping
}

// stick returns the backend index that a client is bound to, and takes a reference. The time runs
// only while no session holds the entry. As in VPP, the index may point to another backend by now,
// or to none.
func (n *Plugin) stick(key affinityKey) (uint8, bool) {
	a := n.affinities[key]
	if a == nil {
		return 0, false
	}
	if a.refs == 0 && a.expire < n.net.Now() {
		n.dropAffinity(key, a)
		return 0, false
	}
	a.refs++
	return a.index, true
}

// bindClient binds a client to the backend that was chosen for it, unless an entry exists already.
func (n *Plugin) bindClient(key affinityKey, mp *Mapping, index uint32) {
	if n.affinities[key] != nil {
		return
	}
	n.affinities[key] = &affinity{index: uint8(index), refs: 1, seconds: mp.Affinity, owner: mp}
	mp.sticky[key] = true
}

// release gives a reference back when a session ends; the last one starts the clock.
func (n *Plugin) release(key affinityKey) {
	a := n.affinities[key]
	if a == nil {
		return
	}
	if a.refs--; a.refs == 0 {
		a.expire = float64(a.seconds) + n.net.Now()
	}
}

// forgetClients drops the entries of a deleted mapping.
func (n *Plugin) forgetClients(mp *Mapping) {
	for key := range mp.sticky {
		delete(n.affinities, key)
	}
	mp.sticky = nil
}

// dropAffinity removes an entry, also from the index of its mapping.
func (n *Plugin) dropAffinity(key affinityKey, a *affinity) {
	delete(n.affinities, key)
	delete(a.owner.sticky, key)
}
