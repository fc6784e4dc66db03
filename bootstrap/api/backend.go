package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
)

// Errors of a Backend with an HTTP status of their own; any other error is a 500.
var (
	// ErrNotFound means that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the present state does not allow the request, for example to
	// suspend a suspended actor.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable means that the agent cannot answer yet or at present.
	ErrUnavailable = errors.New("unavailable")
	// ErrInvalid means that the request is invalid.
	ErrInvalid = errors.New("invalid request")
	// ErrForbidden means that the request is never allowed, for example to kill the root.
	ErrForbidden = errors.New("forbidden")
	// ErrUnsupported means that this agent does not support the request, for example faults
	// without --enable-chaos.
	ErrUnsupported = errors.New("not supported")
)

// Code returns the HTTP status of an error above, or of an error that wraps one; 0 = another error.
func Code(err error) int {
	for _, known := range []struct {
		err  error
		code int
	}{
		{ErrInvalid, http.StatusBadRequest},
		{ErrForbidden, http.StatusForbidden},
		{ErrNotFound, http.StatusNotFound},
		{ErrConflict, http.StatusConflict},
		{ErrUnsupported, http.StatusNotImplemented},
		{ErrUnavailable, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return 0
}

// Process is a process of actors from the view of the HTTP server: the agent, or the connector. All
// methods are safe for concurrent use and return immutable values. Methods with a context return
// when it ends. Methods without one return at once, even while actors hang.
type Process interface {
	Prober
	Inspector
	Commander
}

// Backend is the agent. The server has more resources for it than for another Process.
type Backend interface {
	Prober
	Reader
	Controller
}

// Prober answers probes. It reads published values and never waits: a hanging actor must not make a
// probe hang.
type Prober interface {
	// Live returns the reason to restart the process; nil = there is none. It does not depend
	// on VPP, Kubernetes or etcd, because a restart would not help if one of them is down.
	Live() error
	// Readiness reports whether VPP on this node is in the desired state.
	Readiness() Readiness
}

// Inspector shows actors. It must not wait for an actor, except in State.
type Inspector interface {
	// Actors returns all actors, ordered by path.
	Actors(ctx context.Context) ([]Actor, error)
	// Actor returns one actor. ErrNotFound.
	Actor(ctx context.Context, path string) (*Actor, error)
	// Mailbox returns the messages in the mailbox of an actor. ErrNotFound.
	Mailbox(ctx context.Context, path string) (*Mailbox, error)
	// State returns the state of an actor as JSON, which the actor encodes. ErrNotFound.
	State(ctx context.Context, path string) (json.RawMessage, error)
	// Failures returns the last failures of an actor, the newest first. ErrNotFound.
	Failures(ctx context.Context, path string) ([]Failure, error)
	// Traffic counts the messages that the actors of its kind have handled and sent.
	// ErrNotFound.
	Traffic(ctx context.Context, path string) (*Traffic, error)
	// DeadLetters returns messages that were not delivered.
	DeadLetters(ctx context.Context) (*DeadLetters, error)
}

// Commander executes commands on actors. Only the control socket calls it.
type Commander interface {
	// Command executes a verb on one actor. ErrNotFound, ErrConflict, ErrForbidden,
	// ErrUnsupported.
	Command(ctx context.Context, path string, verb Verb) error
}

// Reader reads the state of the agent.
type Reader interface {
	Inspector
	// Status returns the state of the node in one line.
	Status(ctx context.Context) (*NodeStatus, error)
	// Services returns all services, ordered by key.
	Services(ctx context.Context) ([]Service, error)
	// Service returns everything about one service "namespace/name". ErrNotFound.
	Service(ctx context.Context, key string) (*ServiceDetail, error)
	// ServiceSessions asks VPP for the sessions of a service, which costs VPP a pass over all
	// of its sessions for each backend. ErrNotFound, ErrUnavailable.
	ServiceSessions(ctx context.Context, key string) (*ServiceSessions, error)
	// Packet explains a packet from an address to "ip:port/PROTO". ErrInvalid.
	Packet(ctx context.Context, source, destination string) (*Packet, error)
	// Interfaces returns the interfaces of VPP.
	Interfaces(ctx context.Context) (*Interfaces, error)
	// Addresses returns the load-balancer addresses of pools.
	Addresses(ctx context.Context) (*Addresses, error)
	// Sessions returns the fill level of VPP's table of NAT sessions. ErrUnavailable until the
	// agent has read it.
	Sessions(ctx context.Context) (*Sessions, error)
	// External returns external configuration: its layers, and the state of each entry.
	External(ctx context.Context) (*External, error)
	// Nodes returns the nodes of the cluster, ordered by name.
	Nodes(ctx context.Context) (*Nodes, error)
	// Events returns a page of the journal, the newest first.
	Events(ctx context.Context, query EventQuery) (*EventPage, error)
	// Resync returns the progress of the renderers, and repairs.
	Resync(ctx context.Context) (*Resync, error)
	// Diff reads VPP and compares it with the desired state, without changes.
	Diff(ctx context.Context) (*Diff, error)
	// Chaos returns faults with their outcomes, and whether chaos is enabled.
	Chaos(ctx context.Context) (*live.Status, error)
}

// Controller changes the state of the agent. Only the control socket calls it.
type Controller interface {
	Commander
	// StartResync starts to read and repair everything and returns at once. It is idempotent.
	StartResync(ctx context.Context, request ResyncRequest) error
	// ChangeAddresses makes this node give up all load-balancer addresses, or take part in
	// elections again. It returns at once. ErrUnsupported without addresses.enabled.
	ChangeAddresses(ctx context.Context, request AddressesRequest) error
	// ApplyExternal replaces a layer of external configuration by a document in JSON; nil
	// removes it. It returns when VPP has the result. An error is the reason why nothing was
	// changed. ErrInvalid, ErrConflict, ErrUnavailable.
	ApplyExternal(ctx context.Context, source string, document []byte) (*ExternalResult, error)
	// Inject begins a fault, StartDrill a plan of faults; both return at once. StopChaos ends
	// all faults and the drill and returns the number of faults. who is the client, for the
	// audit record. ErrUnsupported without --enable-chaos; ErrInvalid, ErrForbidden,
	// ErrNotFound, ErrConflict.
	Inject(ctx context.Context, who string, fault live.Fault) (*live.Record, error)
	StartDrill(ctx context.Context, who string, plan live.Plan) (*live.RunStatus, error)
	StopChaos(ctx context.Context, who string) (int, error)
	// AttachPod assigns an interface of VPP to the pod "namespace/name"; "" removes the
	// assignment. It returns when VPP has the resulting roles. On an error it has rolled the
	// change back; the error names the parts for which this failed. ErrConflict,
	// ErrUnavailable.
	AttachPod(ctx context.Context, pod, name string) (*PodInterface, error)
}

// Verb is an operation on an actor.
type Verb string

// Verbs of Commander, as in the URL: POST /api/v1/actors/{path}:verb.
const (
	// VerbRestart makes the supervisor of the actor restart it.
	VerbRestart Verb = "restart"
	// VerbKill fails the actor as if it had panicked: its supervisor decides.
	VerbKill Verb = "kill"
	// VerbSuspend closes the mailbox of the actor: messages wait. ErrUnsupported without
	// --enable-chaos; ErrForbidden for an exempt actor.
	VerbSuspend Verb = "suspend"
	// VerbResume opens the mailbox again. ErrUnsupported without --enable-chaos.
	VerbResume Verb = "resume"
)

// ChaosRequest is the body of POST /api/v1/chaos: a fault, or a plan of them.
type ChaosRequest struct {
	live.Fault
	// Plan is a drill; it excludes the fields of Fault.
	Plan *live.Plan `json:"plan,omitempty"`
}

// ChaosStopped is the answer of DELETE /api/v1/chaos.
type ChaosStopped struct {
	// Stopped is the number of faults that were ended.
	Stopped int `json:"stopped"`
}
