package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
)

// Errors of a Backend that have a status of their own; any other is a 500.
var (
	// ErrNotFound means that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the state does not allow it now, for example suspending what is suspended.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable means that the agent does not know yet, or cannot ask now.
	ErrUnavailable = errors.New("unavailable")
	// ErrInvalid means that the request cannot mean anything.
	ErrInvalid = errors.New("invalid request")
	// ErrForbidden means that nobody may do that, for example kill the root.
	ErrForbidden = errors.New("forbidden")
	// ErrUnsupported means that this agent cannot do that at all, for example faults without --enable-chaos.
	ErrUnsupported = errors.New("not supported")
)

// Backend is what the HTTP server needs to know of the agent and to ask of it. All methods are safe for concurrent use and return values
// that nobody changes any more. A method with a context gives up when it ends; those without answer at once, whatever the actors do.
type Backend interface {
	Prober
	Reader
	Controller
}

// Prober answers probes. It reads published values and never waits: a hanging actor must not make a probe hang.
type Prober interface {
	// Live returns why the process should be restarted; nil = it works. It does not depend on VPP, Kubernetes or etcd.
	Live() error
	// Readiness says whether this node serves what it should.
	Readiness() Readiness
	// Node says what load balancers ask a proxy for (kube-proxy's /healthz).
	Node() NodeHealth
}

// Reader answers questions.
type Reader interface {
	// Services returns all services, ordered by key.
	Services(ctx context.Context) ([]Service, error)
	// Service returns everything about one service "namespace/name". ErrNotFound.
	Service(ctx context.Context, key string) (*ServiceDetail, error)
	// Interfaces returns the interfaces of VPP.
	Interfaces(ctx context.Context) (*Interfaces, error)
	// External returns external configuration: its layers, and what became of each entry.
	External(ctx context.Context) (*External, error)
	// Nodes returns the nodes of the cluster, ordered by name.
	Nodes(ctx context.Context) (*Nodes, error)
	// Actors returns all actors, ordered by path.
	Actors(ctx context.Context) ([]Actor, error)
	// Actor returns one actor. ErrNotFound.
	Actor(ctx context.Context, path string) (*Actor, error)
	// Mailbox returns what waits in the mailbox of an actor. ErrNotFound.
	Mailbox(ctx context.Context, path string) (*Mailbox, error)
	// State returns the state of an actor as JSON, made by itself. ErrNotFound.
	State(ctx context.Context, path string) (json.RawMessage, error)
	// Failures returns the last failures of an actor, the newest first. ErrNotFound.
	Failures(ctx context.Context, path string) ([]Failure, error)
	// Events returns a page of the journal, the newest first.
	Events(ctx context.Context, query EventQuery) (*EventPage, error)
	// Resync returns how far the renderers are.
	Resync(ctx context.Context) (*Resync, error)
	// Diff compares VPP, read now, with what it should hold, without changing anything.
	Diff(ctx context.Context) (*Diff, error)
	// Chaos returns what is done to the actors on purpose and what came of it, also where that is not enabled.
	Chaos(ctx context.Context) (*live.Status, error)
}

// Controller changes something. It is only asked through the control socket.
type Controller interface {
	// StartResync has everything read and repaired; it returns when that has begun. Repeating it does no harm.
	StartResync(ctx context.Context, request ResyncRequest) error
	// ApplyExternal replaces a layer of external configuration by a document in JSON; nil removes it. It returns when VPP holds the result, or
	// why nothing was changed. ErrInvalid, ErrConflict, ErrUnavailable.
	ApplyExternal(ctx context.Context, source string, document []byte) (*ExternalResult, error)
	// Command does something to one actor. ErrNotFound, ErrConflict, ErrUnsupported.
	Command(ctx context.Context, path string, verb Verb) error
	// Inject lets a fault happen, StartDrill a plan of them; both return when that has begun. StopChaos ends all of it at once and returns how
	// many faults that were. who is for the audit record. ErrUnsupported without --enable-chaos; ErrInvalid, ErrForbidden, ErrNotFound, ErrConflict.
	Inject(ctx context.Context, who string, fault live.Fault) (*live.Record, error)
	StartDrill(ctx context.Context, who string, plan live.Plan) (*live.RunStatus, error)
	StopChaos(ctx context.Context, who string) (int, error)
	// AttachPod tells that an interface of VPP is that of the pod "namespace/name", an empty one that it has none of its own any more. It returns
	// when VPP has the roles that follow; after an error everything is as it was, or the error says what is not. ErrConflict, ErrUnavailable.
	AttachPod(ctx context.Context, pod, name string) (*PodInterface, error)
}

// Verb is what can be done to an actor.
type Verb string

// Verbs of Controller.Command, as they stand in the URL: POST /api/v1/actors/{path}:verb.
const (
	// VerbRestart gives the actor a new incarnation, by its supervisor and in its order.
	VerbRestart Verb = "restart"
	// VerbKill makes the actor fail, as if it had panicked: its supervisor decides.
	VerbKill Verb = "kill"
	// VerbSuspend closes the mailbox of the actor: messages wait.
	VerbSuspend Verb = "suspend"
	// VerbResume opens it again.
	VerbResume Verb = "resume"
)
