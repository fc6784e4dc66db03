package simulator

import (
	"errors"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

var (
	// ErrClosed is returned by operations on a simulator after Close.
	ErrClosed = errors.New("simulator closed")

	// ErrDown is returned by operations that need a running VPP while the simulated VPP is
	// crashed and not restarted yet.
	ErrDown = errors.New("simulated vpp is down")

	// ErrLost is the fate of packets in a VPP that polls its sockets for ever.
	ErrLost = errors.New("simulated vpp polls its sockets for ever")

	// ErrListening is returned by Listen when the simulator listens already.
	ErrListening = errors.New("simulator listens already")

	// ErrNoInterface is returned by the topology API for a name or index that does not exist.
	ErrNoInterface = vnet.ErrNoInterface

	// ErrUnknownMessage is returned by Exec for a message that the simulated VPP does not have
	// in its message table.
	ErrUnknownMessage = errors.New("unknown message")
)
