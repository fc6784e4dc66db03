package external

import "github.com/troupe-vpp/troupe/actors/command"

// Errors of commands about external configuration.
var (
	// errRefused says that entries are refused.
	errRefused = command.Refusal("refused")
	// errReserved says that a layer belongs to the agent.
	errReserved = command.Refusal("snat is the layer of dynamic SNAT, which the configuration of the agent decides")
)
