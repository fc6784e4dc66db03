package external

import "github.com/troupe-vpp/troupe/actors/command"

// Errors of commands about external configuration.
var (
	// errRefused says that entries cannot be had.
	errRefused = command.Refusal("refused")
	// errReserved says that a layer is the agent's own.
	errReserved = command.Refusal("snat is the layer of dynamic SNAT, which the configuration of the agent decides")
)
