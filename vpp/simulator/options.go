package simulator

import (
	"errors"
	"log/slog"
	"time"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Options configures a simulated VPP. The zero value is a VPP as it comes up with an empty
// topology: one interface (local0), no plugin enabled.
type Options struct {
	// Logger receives one line per life-cycle event (start, crash, client gone). Nil discards
	// them.
	Logger *slog.Logger

	// Clock is the time of the data path: session expiry, affinity, LRU. Nil means time.Now. It
	// is called with the model locked and must not call back into the simulator.
	Clock func() time.Time

	// NATWorkers is the number of NAT worker threads. 0 and 1 behave alike. Larger numbers are
	// accepted for the messages that depend on them (nat_set_workers, nat_worker_dump) but the
	// data path stays the single-threaded one. It can be changed for the next incarnation, see
	// SetWorkers.
	NATWorkers int

	// SessionLayer enables VPP's session layer: TCP to VPP itself is reset.
	SessionLayer bool

	// Heap is the size of the main heap in bytes, 0 = 1 GiB. VPP dies when rows have used it
	// up.
	Heap int

	// AutoRestart brings VPP back by itself after a crash, as a process supervisor would.
	// Otherwise the simulator stays down until Restart.
	AutoRestart bool

	// RestartDelay is how long VPP stays down before AutoRestart brings it back, in real time.
	RestartDelay time.Duration

	// OnBoot is called once per incarnation, before the API socket accepts connections: the
	// place to rebuild the topology that a CNI would rebuild. It may use the topology API and
	// Exec. Listen, Crash, Restart and Close wait until it has returned.
	OnBoot func(*VPP)

	// Observe is called with every request of an API client that was executed, and whether it
	// changes the configuration, before anything else happens. It is called with the model
	// locked, so it must not call back into the simulator.
	Observe func(req api.Message, changes bool)

	// WithoutPlugins leaves the messages of these API packages ("nat44_ed", "cnat", "tapv2",
	// ...) out of the message table, as if the plugin was not loaded.
	WithoutPlugins []string
}

// withDefaults returns o with every unset field replaced by its default.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

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
