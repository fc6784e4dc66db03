package nat44

import (
	"github.com/troupe-vpp/troupe/messages"
)

// Renderer is the name of this renderer in messages and plans.
const Renderer = "nat44"

// State returns the row as the API and the command line show it, without pads.
func (r Row) State(inSync bool) *messages.RowState {
	state := &messages.RowState{
		Renderer: Renderer, Vip: r.String(), Flags: r.Flags.Words(), AffinitySeconds: r.Affinity, InSync: inSync,
		Locals: make([]*messages.RowLocal, 0, len(r.Locals)),
	}
	for _, local := range r.Locals {
		state.Locals = append(state.Locals, &messages.RowLocal{Address: local.String(), Weight: uint32(local.Weight), Table: local.Table})
	}
	return state
}
