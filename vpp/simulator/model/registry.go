package model

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
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

// Registry collects handlers by message name.
type Registry map[string]registration

// Has reports whether a message has a handler.
func (r Registry) Has(name string) bool {
	_, ok := r[name]
	return ok
}

// Handle executes a request. One without a handler answers "unimplemented" if it has a reply with a
// return code, and an empty dump otherwise.
func (r Registry) Handle(c *Call, m *Message, req api.Message) {
	if known, ok := r[m.Name]; ok {
		known.handle(c, req)
		return
	}
	if m.Reply != nil {
		c.Reply(RetvalReply(m.Reply, vnet.RetUnimplemented))
	}
}

// NewRegistry returns the handlers of all message families, except memclnt: it belongs to the
// connection itself.
func NewRegistry() Registry {
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
	registerCNAT(r)
	registerACL(r)
	registerVRRP(r)
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
	*Model
	Pid    uint32 // of the incarnation
	Client uint32 // index of the API client, none for requests of the Go API
	sink   func(api.Message)
}

// NewCall returns the execution of a request of a client; each reply goes to sink.
func NewCall(m *Model, pid, client uint32, sink func(api.Message)) *Call {
	return &Call{Model: m, Pid: pid, Client: client, sink: sink}
}

// Reply answers the request with one message.
func (c *Call) Reply(msg api.Message) {
	c.sink(msg)
}

// registerVpe registers the messages about the VPP process.
func registerVpe(r Registry) {
	Read(r, showVersion)
	Read(r, showThreads)
	Read(r, cliInband)
}

// showVersion answers with the release that the model follows.
func showVersion(c *Call, _ *vpe.ShowVersion) {
	c.Reply(&vpe.ShowVersionReply{
		Program:        "vpe",
		Version:        "25.10-release",
		BuildDate:      "2025-10-29T00:00:00",
		BuildDirectory: "simulator",
	})
}

// showThreads lists the main thread and the workers.
func showThreads(c *Call, _ *vlib.ShowThreads) {
	reply := &vlib.ShowThreadsReply{ThreadData: []vlib.ThreadData{{Name: "vpp_main", PID: c.Pid}}}
	for n := range c.Workers {
		reply.ThreadData = append(reply.ThreadData, vlib.ThreadData{
			ID: uint32(n + 1), Name: workerName(n), Type: "workers", CPUID: uint32(n + 1), Core: uint32(n + 1),
		})
	}
	reply.Count = uint32(len(reply.ThreadData))
	c.Reply(reply)
}

// cliInband answers the few commands that the simulated VPP has, all of which only show something.
// It accepts no abbreviations.
func cliInband(c *Call, req *vlib.CliInband) {
	reply := "unknown input `" + req.Cmd + "'\n"
	retval := vnet.RetOK
	command := strings.Join(strings.Fields(req.Cmd), " ")
	if filters, is := strings.CutPrefix(command, "show nat44 sessions"); is {
		if text, ok := c.NAT.Show(filters); ok {
			reply = text
		}
	}
	switch command {
	case "show clock":
		reply = fmt.Sprintf("Time now %.6f, Thu, 01 Jan 2026 00:00:00 GMT\n", c.Now())
	case "show nat44 summary":
		reply = c.NAT.Summary()
	case heap.Command:
		reply = c.DescribeHeap()
	case "show cnat timestamp":
		reply = c.CNAT.Timestamps()
	case "show errors":
		reply = c.CNAT.Errors()
	case "show session state listening lcl 0.0.0.0:0":
		if reply = c.listeners(); !c.SessionLayer {
			retval = commandFailed
		}
	case "show tcp punt":
		reply = "IPv4 TCP punt: disabled\nIPv6 TCP punt: disabled\n"
	case "show udp punt":
		reply = "IPV4 UDP ports punt : \nIPV6 UDP ports punt : \n"
	case "show cnat snat-policy":
		reply = c.CNAT.SNAT.Show(c.NameOf)
	}
	c.Reply(&vlib.CliInbandReply{Retval: retval, Reply: reply})
}

// commandFailed is the return value of a command that ends with an error.
const commandFailed = -1

// listeners shows that no application listens on every address.
func (m *Model) listeners() string {
	if !m.SessionLayer {
		return "show session: session layer is not enabled\n"
	}
	var b strings.Builder
	for thread := range 1 + m.Workers {
		fmt.Fprintf(&b, "Thread %d: 0 sessions matched filter\n", thread)
	}
	return b.String()
}
