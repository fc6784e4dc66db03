package simulator

import (
	"reflect"

	"go.fd.io/govpp/api"
)

// class tells how a request counts.
type class uint8

const (
	classRead    class = iota // asks and changes nothing
	classWrite                // changes the configuration of VPP
	classSession              // belongs to the API connection itself
)

// handler executes one request with the model locked.
type handler func(c *call, req api.Message)

// registration is a handler with the class of its message.
type registration struct {
	handle handler
	class  class
}

// registry collects handlers by message name. Each api_*.go file fills in one
// message family.
type registry map[string]registration

// registerHandlers returns the handlers of all message families.
func registerHandlers() registry {
	r := make(registry)
	registerMemclnt(r)
	registerVpe(r)
	registerInterface(r)
	registerFIB(r)
	registerIP(r)
	registerNeighbor(r)
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

// read registers the handler of a request that changes nothing.
func read[T any, P interface {
	*T
	api.Message
}](r registry, fn func(*call, P),
) {
	register(r, classRead, fn)
}

// write registers the handler of a request that changes VPP's configuration.
func write[T any, P interface {
	*T
	api.Message
}](r registry, fn func(*call, P),
) {
	register(r, classWrite, fn)
}

// register binds fn to the message that it takes.
func register[T any, P interface {
	*T
	api.Message
}](r registry, cl class, fn func(*call, P),
) {
	name := P(new(T)).GetMessageName()
	r[name] = registration{class: cl, handle: func(c *call, req api.Message) {
		if msg, ok := req.(P); ok {
			fn(c, msg)
		}
	}}
}

// call is the execution of one request.
type call struct {
	*model
	vpp     *VPP
	client  *client // nil for requests of the Go API
	context uint32
	sink    func(api.Message)
}

// reply answers the request with one message.
func (c *call) reply(msg api.Message) {
	c.sink(msg)
}

// unimplemented answers a request that the simulator knows by name only.
func unimplemented(c *call, req api.Message) {
	m := c.vpp.catalog.byName[req.GetMessageName()]
	if m != nil && m.reply != nil {
		c.reply(retvalReply(m.reply, retUnimplemented))
	}
}

// retvalReply makes a reply of the given type that carries nothing but a
// return code.
func retvalReply(typ reflect.Type, retval int32) api.Message {
	v := reflect.New(typ)
	v.Elem().FieldByName("Retval").SetInt(int64(retval))
	msg, _ := v.Interface().(api.Message)
	return msg
}

// retvalOf returns the return code of a reply, and whether it has one.
func retvalOf(msg api.Message) (int32, bool) {
	f := reflect.ValueOf(msg).Elem().FieldByName("Retval")
	if !f.IsValid() || f.Kind() != reflect.Int32 {
		return 0, false
	}
	return int32(f.Int()), true
}
