package simulator

import (
	"encoding/binary"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"

	// The messages of a package exist for the simulator only if the package is
	// linked in; those without handlers are named here.
	_ "go.fd.io/govpp/binapi/af_packet"
	_ "go.fd.io/govpp/binapi/cnat"
	_ "go.fd.io/govpp/binapi/feature"
	_ "go.fd.io/govpp/binapi/tapv2"
	_ "go.fd.io/govpp/binapi/vlib"
	_ "go.fd.io/govpp/binapi/vpe"
)

// coreAPIs are the API packages whose messages the simulated VPP has, beside
// those that Options.WithoutPlugins removes.
var coreAPIs = []string{
	"memclnt", "vlib", "vpe", "interface", "fib", "ip", "ip_neighbor", "feature",
	"af_packet", "tapv2", "nat44_ed", "cnat", "acl",
}

// Fixed parts of the handshake: the client has to know the one of sockclnt_create before
// it has seen a table.
const (
	maxTableName          = 63 // longer names are cut in the message table
	idSockclntCreate      = 15
	idSockclntCreateReply = 16
)

// message is one entry of the message catalog. It is immutable.
type message struct {
	name    string // VPP's name
	table   string // name_crc, as in the message table
	typ     reflect.Type
	kind    api.MessageType
	layout  layout
	handle  handler      // nil for messages that are not requests
	class   class        // how requests of this name count
	reply   reflect.Type // type of the reply with a retval, nil if there is none
	context int          // offset of the context in the payload
	body    int          // offset of the first own field in the payload
}

// catalog is every message of the simulated VPP by name.
type catalog struct {
	byName map[string]*message
	byType map[reflect.Type]*message
	names  []string // sorted
}

// newCatalog collects the messages of the linked API packages and binds the
// handlers to them.
func newCatalog(without []string) *catalog {
	cat := &catalog{byName: make(map[string]*message), byType: make(map[reflect.Type]*message)}
	for _, group := range api.GetRegisteredMessages() {
		for table, msg := range group {
			typ := reflect.TypeOf(msg).Elem()
			pkg := path.Base(typ.PkgPath())
			if slices.Contains(coreAPIs, pkg) && !slices.Contains(without, pkg) {
				cat.add(newMessage(table, msg, typ))
			}
		}
	}
	cat.bind(registerHandlers())
	cat.names = make([]string, 0, len(cat.byName))
	for name := range cat.byName {
		cat.names = append(cat.names, name)
	}
	slices.Sort(cat.names)
	return cat
}

func (cat *catalog) add(m *message) {
	cat.byName[m.name] = m
	cat.byType[m.typ] = m
}

// bind attaches handlers to requests. A request without a handler answers
// "unimplemented" if it has a plain reply, and an empty dump otherwise.
func (cat *catalog) bind(handlers map[string]registration) {
	for name, m := range cat.byName {
		if reply, ok := cat.byName[name+"_reply"]; ok {
			if f, ok := reply.typ.FieldByName("Retval"); ok && f.Type.Kind() == reflect.Int32 {
				m.reply = reply.typ
			}
		}
		if r, ok := handlers[name]; ok {
			m.handle, m.class = r.handle, r.class
		} else if m.kind == api.RequestMessage && !strings.HasSuffix(name, "_reply") {
			m.handle, m.class = unimplemented, classRead
		}
		if m.handle != nil {
			m.layout = compileLayout(m.typ)
		}
	}
}

// newMessage describes one generated message.
func newMessage(table string, msg api.Message, typ reflect.Type) *message {
	m := &message{
		name:  msg.GetMessageName(),
		table: table,
		typ:   typ,
		kind:  msg.GetMessageType(),
	}
	switch m.kind {
	case api.RequestMessage:
		m.context, m.body = 6, 10
	case api.ReplyMessage, api.EventMessage:
		m.context, m.body = 2, 6
	default:
		m.context, m.body = 0, 2
	}
	return m
}

// decode turns a frame payload into a message, or reports false for a payload
// that is shorter than the message it claims to be.
func (m *message) decode(payload []byte) (api.Message, bool) {
	if len(payload) < m.body || !m.layout.fits(payload[m.body:]) {
		return nil, false
	}
	msg, ok := reflect.New(m.typ).Interface().(api.Message)
	if !ok {
		return nil, false
	}
	if err := codec.DecodeMsg(payload, msg); err != nil {
		return nil, false
	}
	return msg, true
}

// appendFrame appends msg as a frame with the given id and context.
func (m *message) appendFrame(out []byte, msg api.Message, id uint16, context uint32) ([]byte, error) {
	body, ok := msg.(codec.Marshaler)
	if !ok {
		return out, fmt.Errorf("encode %s: no marshaler", m.name)
	}
	size := m.body + body.Size()
	start := len(out)
	out = slices.Grow(out, frameHeaderSize+size)[:start+frameHeaderSize+size]
	frame := out[start:]
	clear(frame)
	binary.BigEndian.PutUint32(frame[8:12], uint32(size))
	payload := frame[frameHeaderSize:]
	binary.BigEndian.PutUint16(payload, id)
	if m.context > 0 {
		binary.BigEndian.PutUint32(payload[m.context:], context)
	}
	if _, err := body.Marshal(payload[m.body:]); err != nil {
		return out[:start], fmt.Errorf("encode %s: %w", m.name, err)
	}
	return out, nil
}

// idTable is the numbering of the messages in one incarnation of VPP.
type idTable struct {
	byID    map[uint16]*message
	idOf    map[string]uint16
	entries []memclnt.MessageTableEntry
}

// Message ids of incarnation n start at idBase + n*idStride: no number means
// two different messages in neighbouring incarnations, so a client that kept
// a stale id talks into the void instead of doing something else by luck.
const (
	idBase   = 100
	idStride = 1024
	idCycles = 60
)

// number assigns ids for incarnation n. sockclnt_create and its reply keep
// their fixed ids; everything else is shuffled.
func (cat *catalog) number(n uint64) *idTable {
	t := &idTable{
		byID: make(map[uint16]*message, len(cat.names)),
		idOf: make(map[string]uint16, len(cat.names)),
	}
	next := uint16(idBase + n%idCycles*idStride)
	// A stride that is coprime to the number of names visits each once.
	step := 7919 % len(cat.names)
	for gcd(step, len(cat.names)) != 1 {
		step++
	}
	at := int(n % uint64(len(cat.names)))
	for range cat.names {
		name := cat.names[at]
		at = (at + step) % len(cat.names)
		id := next
		switch name {
		case "sockclnt_create":
			id = idSockclntCreate
		case "sockclnt_create_reply":
			id = idSockclntCreateReply
		default:
			next++
		}
		t.add(cat.byName[name], id)
	}
	t.deleteLast()
	return t
}

func (t *idTable) add(m *message, id uint16) {
	t.byID[id] = m
	t.idOf[m.name] = id
	t.entries = append(t.entries, memclnt.MessageTableEntry{Index: id, Name: m.table[:min(len(m.table), maxTableName)]})
}

// deleteLast moves sockclnt_delete behind its reply: GoVPP takes the last
// entry whose name starts with sockclnt_delete_ for the request.
func (t *idTable) deleteLast() {
	for i, e := range t.entries {
		if t.byID[e.Index].name == "sockclnt_delete" {
			t.entries = append(slices.Delete(t.entries, i, i+1), e)
			return
		}
	}
}

// gcd returns the greatest common divisor of a and b.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
