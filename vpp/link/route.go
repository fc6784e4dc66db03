package link

import (
	"errors"
	"fmt"
	"reflect"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/vpp/features"
)

// incoming is a message that VPP may send in one connection: its number there and how to decode it.
type incoming struct {
	id    uint16
	typ   reflect.Type
	class api.MessageType
	// retval leads to the return value among the fields; nil = there is none.
	retval []int
	event  chan struct{} // that the message signals; nil = it is no event
	// layout of the fields, which begin at body.
	layout *layout
	body   int
}

// newIncoming describes a message of the bindings with the number that the connected VPP gave it.
func newIncoming(msg api.Message, id uint16) *incoming {
	in := &incoming{id: id, typ: reflect.TypeOf(msg).Elem(), class: msg.GetMessageType()}
	in.layout, in.body = layoutOf(in.typ), bodyOf(in.class)
	// It is the first field as a rule; acl_add_replace_reply has the index before it.
	if field, found := in.typ.FieldByName("Retval"); found && field.Type.Kind() == reflect.Int32 {
		in.retval = field.Index
	}
	return in
}

// bodyOf is where the fields of a message begin: behind its number and the other parts in front of
// messages of its class.
func bodyOf(class api.MessageType) int {
	switch class {
	case api.RequestMessage:
		return 10
	case api.ReplyMessage, api.EventMessage:
		return 6
	default:
		return 2
	}
}

// decode makes a fresh message from a frame, after a check that the frame has all that the message
// counts. The capacity is cut off: GoVPP's decoder reads a frame that is too short on into the rest
// of the transport's buffer, where it finds an older frame.
func (in *incoming) decode(data []byte) (api.Message, error) {
	msg := reflect.New(in.typ).Interface().(api.Message)
	if err := in.layout.fits(data[min(in.body, len(data)):]); err != nil {
		return nil, fmt.Errorf("decode %s: %w", msg.GetMessageName(), err)
	}
	if err := codec.DecodeMsg(data[:len(data):len(data)], msg); err != nil {
		return nil, fmt.Errorf("decode %s: %w", msg.GetMessageName(), err)
	}
	return msg, nil
}

// context reads the request context of a frame; ok is false when the frame is too short for one.
func (in *incoming) context(data []byte) (context uint32, ok bool) {
	if len(data) < 10 && (in.class == api.RequestMessage || len(data) < 6) {
		return 0, false
	}
	context, err := codec.DecodeMsgContext(data, in.class)
	return context, err == nil
}

// status returns the error that a decoded reply stands for; nil for retval 0 and for replies
// without one.
func (in *incoming) status(request string, reply api.Message) error {
	if in.retval == nil {
		return nil
	}
	if code := int32(reflect.ValueOf(reply).Elem().FieldByIndex(in.retval).Int()); code != 0 {
		return &RetvalError{Message: request, Retval: code}
	}
	return nil
}

// route is a request in one connection: its number there and its answers.
type route struct {
	name    string
	id      uint16
	kind    kind
	reply   *incoming
	details *incoming
}

// route resolves a request; the answer is kept for the life of the connection, because numbers
// never change within one.
func (conn *connection) route(req api.Message) (*route, error) {
	typ := reflect.TypeOf(req)
	conn.mu.Lock()
	found := conn.routes[typ]
	conn.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := conn.resolve(req)
	if err != nil {
		return nil, err
	}
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if found := conn.routes[typ]; found != nil {
		// another caller was first: answers are distinguished by the identity of their
		// incoming
		return found, nil
	}
	conn.routes[typ] = made
	made.reply, made.details = conn.known(made.reply), conn.known(made.details)
	return made, nil
}

// known registers a message that VPP may send, once: two requests may have the same answer. conn.mu
// is held.
func (conn *connection) known(in *incoming) *incoming {
	if in == nil {
		return nil
	}
	if before := conn.incoming[in.id]; before != nil {
		return before
	}
	conn.incoming[in.id] = in
	return in
}

// resolve looks up the numbers of a request and of its answers.
func (conn *connection) resolve(req api.Message) (*route, error) {
	shape, ok := conn.registry.shapeOf(req)
	if !ok {
		return nil, fmt.Errorf("%w: %s is not a request with a known reply", ErrRefused, req.GetMessageName())
	}
	r := &route{name: req.GetMessageName(), kind: shape.kind}
	var err error
	if r.id, err = conn.lookup(req); err != nil {
		return nil, err
	}
	if shape.kind != kindDump {
		id, err := conn.lookup(shape.reply)
		if err != nil {
			return nil, err
		}
		r.reply = newIncoming(shape.reply, id)
	}
	if shape.kind != kindReply {
		id, err := conn.lookup(shape.details)
		if err != nil {
			return nil, err
		}
		r.details = newIncoming(shape.details, id)
	}
	return r, nil
}

// lookup returns the number that the connected VPP gave to a message.
func (conn *connection) lookup(msg api.Message) (uint16, error) {
	id, err := conn.api.GetMsgID(msg.GetMessageName(), msg.GetCrcString())
	if err == nil {
		return id, nil
	}
	var unknown *adapter.UnknownMsgError
	if errors.As(err, &unknown) {
		return 0, fmt.Errorf("%w: %s_%s: %s", ErrUnsupported, msg.GetMessageName(), msg.GetCrcString(), features.Why(conn.table, msg))
	}
	return 0, fmt.Errorf("look up %s_%s: %w", msg.GetMessageName(), msg.GetCrcString(), err)
}

// table is the message table of the connected VPP.
func (conn *connection) table(name, crc string) bool {
	if crc == "" {
		return conn.api.has(name)
	}
	_, err := conn.api.GetMsgID(name, crc)
	return err == nil
}

// prepare resolves what every connection needs: control_ping, which ends dumps and probes silence.
func (conn *connection) prepare() error {
	ping, err := conn.route(&memclnt.ControlPing{})
	if err != nil {
		return err
	}
	frame, err := codec.EncodeMsg(&memclnt.ControlPing{}, ping.id)
	if err != nil {
		return fmt.Errorf("encode control_ping: %w", err)
	}
	conn.ping, conn.pingFrame = ping, frame
	return nil
}
