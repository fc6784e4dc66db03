package render

import (
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Surroundings are the input of planning besides the views of services.
type Surroundings struct {
	// Begin is the last list of services, with the node; nil = none yet.
	Begin *messages.Begin
	// Set is the interface set of the connected VPP; nil = not known.
	Set *messages.InterfaceSet
	// Phase is how far the services have rendered.
	Phase Phase
}

// Replaced returns the indexes of interfaces that are missing in the next set, or belong to another
// interface there. VPP has dropped what it held for them.
func Replaced(before, now *messages.InterfaceSet) (indexes []uint32) {
	names := make(map[uint32]string, len(now.GetInterfaces()))
	for _, i := range now.GetInterfaces() {
		names[i.GetSwIfIndex()] = i.GetName()
	}
	for _, i := range before.GetInterfaces() {
		if names[i.GetSwIfIndex()] != i.GetName() {
			indexes = append(indexes, i.GetSwIfIndex())
		}
	}
	return indexes
}

// interfaces adopts the interface set when it is complete. A role that comes later would make VPP
// walk all rows and leave entries in its forwarding table. A client behind an unknown interface
// would be dropped or let in.
func (d *Driver[K]) interfaces(c *runtime.Context, m *messages.InterfaceSet) {
	if m.GetComplete() && m.GetGeneration() > d.set.GetGeneration() {
		d.set = m
		d.settle(c)
	}
}

// located reports whether the interface set belongs to the connected VPP.
func (d *Driver[K]) located() bool {
	return d.set != nil && d.set.GetBoot() == d.connection.link.GetBoot()
}

// settle completes the plan with the surroundings.
func (d *Driver[K]) settle(c *runtime.Context) {
	s := Surroundings{Begin: d.barrier.begun, Phase: d.barrier.phase()}
	if d.located() {
		s.Set = d.set
	}
	d.kind.Settle(s)
	d.changed(c)
}
