package handlers

import (
	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// Class is how a request counts.
type Class uint8

const (
	ClassRead    Class = iota // changes nothing
	ClassWrite                // changes the configuration of VPP
	ClassSession              // belongs to the API connection itself
)

// handler executes one request with the model locked.
type handler func(c *Call, req api.Message)

// registration is a handler with the class of its message.
type registration struct {
	handle handler
	Class  Class
}

// Registry collects handlers by message name. Each api_*.go file fills in one message family.
type Registry map[string]registration

// Has reports whether a message has a handler.
func (r Registry) Has(name string) bool {
	_, ok := r[name]
	return ok
}

// Handle executes a request. One without a handler answers "unimplemented" if it has a reply with a
// return code, and an empty dump otherwise.
func (r Registry) Handle(c *Call, m *wire.Message, req api.Message) {
	if known, ok := r[m.Name]; ok {
		known.handle(c, req)
		return
	}
	if m.Reply != nil {
		c.Reply(wire.RetvalReply(m.Reply, vnet.RetUnimplemented))
	}
}

// New returns the handlers of all message families, except memclnt: it belongs to the connection
// itself.
func New() Registry {
	r := make(Registry)
	registerVpe(r)
	registerInterface(r)
	registerFIB(r)
	registerIP(r)
	registerNeighbor(r)
	registerBridge(r)
	registerFeature(r)
	registerNAT44Config(r)
	registerNAT44Mapping(r)
	registerNAT44LB(r)
	registerNAT44Session(r)
	registerNAT44VRF(r)
	registerCNAT(r)
	registerACL(r)
	return r
}

// Read registers the handler of a request that changes nothing.
func Read[T any, P interface {
	*T
	api.Message
}](r Registry, fn func(*Call, P),
) {
	Register(r, ClassRead, fn)
}

// write registers the handler of a request that changes VPP's configuration.
func write[T any, P interface {
	*T
	api.Message
}](r Registry, fn func(*Call, P),
) {
	Register(r, ClassWrite, fn)
}

// Register binds fn to the message that it takes.
func Register[T any, P interface {
	*T
	api.Message
}](r Registry, cl Class, fn func(*Call, P),
) {
	name := P(new(T)).GetMessageName()
	r[name] = registration{Class: cl, handle: func(c *Call, req api.Message) {
		if msg, ok := req.(P); ok {
			fn(c, msg)
		}
	}}
}

// Call is the execution of one request.
type Call struct {
	*model.Model
	Pid    uint32 // of the incarnation
	Client uint32 // index of the API client, none for requests of the Go API
	sink   func(api.Message)
}

// NewCall returns the execution of a request of a client; each reply goes to sink.
func NewCall(m *model.Model, pid, client uint32, sink func(api.Message)) *Call {
	return &Call{Model: m, Pid: pid, Client: client, sink: sink}
}

// Reply answers the request with one message.
func (c *Call) Reply(msg api.Message) {
	c.sink(msg)
}
