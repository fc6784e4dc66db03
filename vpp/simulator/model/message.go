package model

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"

	// The messages of a package exist for the simulator only if the package is linked in;
	// packages without handlers are named here.
	_ "go.fd.io/govpp/binapi/af_packet"
	_ "go.fd.io/govpp/binapi/cnat"
	_ "go.fd.io/govpp/binapi/feature"
	_ "go.fd.io/govpp/binapi/tapv2"
	_ "go.fd.io/govpp/binapi/vlib"
	_ "go.fd.io/govpp/binapi/vpe"
)

// coreAPIs are the API packages of the simulated VPP, before Options.WithoutPlugins removes some.
var coreAPIs = []string{
	"memclnt", "vlib", "vpe", "interface", "fib", "ip", "ip_neighbor", "arp", "l2", "feature",
	"af_packet", "tapv2", "nat44_ed", "cnat", "acl",
}

// Fixed parts of the handshake: the client has to know the one of sockclnt_create before it has
// seen a table.
const (
	maxTableName          = 63 // longer names are cut in the message table
	IDSockclntCreate      = 15
	IDSockclntCreateReply = 16
)

// Message is one entry of the message catalog. It is immutable.
type Message struct {
	Name    string // VPP's name
	table   string // name_crc, as in the message table
	typ     reflect.Type
	kind    api.MessageType
	Request bool         // a client may send it
	Reply   reflect.Type // type of the reply with a retval, nil if there is none
	Context int          // offset of the context in the payload
	Body    int          // offset of the first own field in the payload
}

// Catalog is every message of the simulated VPP by name.
type Catalog struct {
	byName map[string]*Message
	byType map[reflect.Type]*Message
	Names  []string // sorted
}

// NewCatalog collects the messages of the linked API packages, without some of these. A message is
// a request if it looks like one, or if handled names it.
func NewCatalog(without []string, handled func(name string) bool) *Catalog {
	cat := &Catalog{byName: make(map[string]*Message), byType: make(map[reflect.Type]*Message)}
	for _, group := range api.GetRegisteredMessages() {
		for table, msg := range group {
			typ := reflect.TypeOf(msg).Elem()
			pkg := path.Base(typ.PkgPath())
			if slices.Contains(coreAPIs, pkg) && !slices.Contains(without, pkg) {
				cat.add(newMessage(table, msg, typ))
			}
		}
	}
	for name, m := range cat.byName {
		cat.complete(m, handled(name))
	}
	cat.Names = slices.Sorted(maps.Keys(cat.byName))
	return cat
}

// Named returns the message of a name, nil if VPP does not have it.
func (cat *Catalog) Named(name string) *Message { return cat.byName[name] }

// add enters a message under its name and its Go type.
func (cat *Catalog) add(m *Message) {
	cat.byName[m.Name] = m
	cat.byType[m.typ] = m
}

// complete fills in the parts that depend on the other messages, like the reply of a request.
func (cat *Catalog) complete(m *Message, handled bool) {
	if reply, ok := cat.byName[m.Name+"_reply"]; ok {
		if f, ok := reply.typ.FieldByName("Retval"); ok && f.Type.Kind() == reflect.Int32 {
			m.Reply = reply.typ
		}
	}
	m.Request = handled || m.kind == api.RequestMessage && !strings.HasSuffix(m.Name, "_reply")
}

// newMessage describes one generated message.
func newMessage(table string, msg api.Message, typ reflect.Type) *Message {
	m := &Message{
		Name:  msg.GetMessageName(),
		table: table,
		typ:   typ,
		kind:  msg.GetMessageType(),
	}
	switch m.kind {
	case api.RequestMessage:
		m.Context, m.Body = 6, 10
	case api.ReplyMessage, api.EventMessage:
		m.Context, m.Body = 2, 6
	default:
		m.Context, m.Body = 0, 2
	}
	return m
}

// Empty returns a message of this name with zero values.
func (m *Message) Empty() api.Message {
	msg, _ := reflect.New(m.typ).Interface().(api.Message)
	return msg
}

// Decode turns a frame payload into a message, or reports false for a payload that is shorter than
// the message it claims to be.
func (m *Message) Decode(payload []byte) (api.Message, bool) {
	msg := m.Empty()
	return msg, codec.DecodeMsg(payload, msg) == nil
}

// AppendFrame appends msg as a frame with the given id and context.
func (m *Message) AppendFrame(out []byte, msg api.Message, id uint16, context uint32) ([]byte, error) {
	body, ok := msg.(codec.Marshaler)
	if !ok {
		return out, fmt.Errorf("encode %s: no marshaler", m.Name)
	}
	size := m.Body + body.Size()
	start := len(out)
	out = slices.Grow(out, FrameHeaderSize+size)[:start+FrameHeaderSize+size]
	frame := out[start:]
	clear(frame)
	binary.BigEndian.PutUint32(frame[8:12], uint32(size))
	payload := frame[FrameHeaderSize:]
	binary.BigEndian.PutUint16(payload, id)
	if m.Context > 0 {
		binary.BigEndian.PutUint32(payload[m.Context:], context)
	}
	if _, err := body.Marshal(payload[m.Body:]); err != nil {
		return out[:start], fmt.Errorf("encode %s: %w", m.Name, err)
	}
	return out, nil
}

// RetvalReply makes a reply of the given type that carries only a return code.
func RetvalReply(typ reflect.Type, retval int32) api.Message {
	v := reflect.New(typ)
	v.Elem().FieldByName("Retval").SetInt(int64(retval))
	msg, _ := v.Interface().(api.Message)
	return msg
}
