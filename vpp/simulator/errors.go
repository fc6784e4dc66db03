package simulator

import "errors"

var (
	// ErrClosed is returned by operations on a simulator after Close.
	ErrClosed = errors.New("simulator closed")

	// ErrDown is returned by operations that need a running VPP while the
	// simulated VPP is crashed and not restarted yet.
	ErrDown = errors.New("simulated vpp is down")

	// ErrListening is returned by Listen when the simulator listens already.
	ErrListening = errors.New("simulator listens already")

	// ErrNoInterface is returned by the topology API for a name or index that
	// does not exist.
	ErrNoInterface = errors.New("no such interface")

	// ErrUnknownMessage is returned by Exec for a message that the simulated
	// VPP does not have in its message table.
	ErrUnknownMessage = errors.New("unknown message")

	// ErrFrameTooBig is returned by the frame decoder when the length field of
	// a frame header exceeds the limit.
	ErrFrameTooBig = errors.New("frame too big")
)
