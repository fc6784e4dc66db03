package cnat

import (
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Endpoint is an address with a port, or an interface whose address counts.
type Endpoint struct {
	Addr netip.Addr
	SwIf uint32 // none where the address counts
	Port uint16
}

// Path is one backend of a translation.
type Path struct {
	Dst, Src Endpoint
	Flags    uint8
}

// FlagActive is in the flags of every path that VPP can resolve, beside those that the client sent.
const FlagActive = 1

// Key is what identifies a translation to VPP.
type Key struct {
	VIP   Endpoint
	Proto uint8
}

// Translation is what VPP does with the packets to a VIP and port. Of these fields a dump returns all but RealIP, Flags and Hash.
type Translation struct {
	Key
	RealIP uint8  // of the request that added it
	Flags  uint8  // of the last request
	LBType uint8  // of the request that added it
	Hash   uint32 // of the request that added it
	Paths  []Path
}

// Plugin is the state of the plugin in one incarnation of VPP. It is guarded by VPP.mu.
type Plugin struct {
	Translations pool.Pool[*Translation] // by id
	ids          map[Key]uint32
	SNAT         SNAT
}

// NewPlugin returns the state after the start of VPP.
func NewPlugin() *Plugin {
	return &Plugin{ids: make(map[Key]uint32), SNAT: newSNAT()}
}

// Update adds a translation, or changes the one of the same key in place, and returns its id. The plugin keeps t.
func (p *Plugin) Update(t *Translation) uint32 {
	for i := range t.Paths {
		t.Paths[i].Flags |= FlagActive
	}
	id, known := p.ids[t.Key]
	if !known {
		id = p.Translations.Put(t)
		p.ids[t.Key] = id
		return id
	}
	if old, ok := p.Translations.Get(id); ok {
		old.Flags, old.Paths = t.Flags, t.Paths
	}
	return id
}

// Delete deletes a translation. Its id is the next one to be given away.
func (p *Plugin) Delete(id uint32) int32 {
	t, ok := p.Translations.Get(id)
	if !ok {
		return vnet.RetNoSuchEntry
	}
	delete(p.ids, t.Key)
	p.Translations.Remove(id)
	return vnet.RetOK
}

// Purge deletes all sessions and, with them, all translations.
func (p *Plugin) Purge() {
	for id := range p.Translations.All {
		p.Delete(id)
	}
}
