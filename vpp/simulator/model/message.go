package model

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	// The messages of a package exist for the simulator only if the package is linked in;
	// packages without handlers are named here.
	_ "go.fd.io/govpp/binapi/cnat"
	_ "go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	_ "go.fd.io/govpp/binapi/vlib"
	_ "go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/codec"
)

// coreAPIs are the API packages of the simulated VPP, before Options.WithoutPlugins removes some.
var coreAPIs = []string{
	"memclnt", "vlib", "vpe", "interface", "fib", "ip", "ip_neighbor", "arp", "l2", "feature",
	"nat44_ed", "cnat", "acl", "vrrp",
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

// maxTag is the longest tag that VPP keeps; it forces the last byte to NUL.
const maxTag = 63

// Clip cuts a tag to what VPP keeps of it.
func Clip(tag string) string {
	return tag[:min(len(tag), maxTag)]
}

// FamilyBit returns the index of an address family in model.tables.
func FamilyBit(ip6 bool) int {
	if ip6 {
		return 1
	}
	return 0
}

// FromPrefix decodes an API prefix, host bits included.
func FromPrefix(p ip_types.Prefix) (netip.Prefix, bool) {
	prefix := netip.PrefixFrom(forwarding.FromAddress(p.Address), int(p.Len))
	return prefix, prefix.IsValid()
}

// ToIP4 encodes an ip4 address; anything else becomes 0.0.0.0.
func ToIP4(addr netip.Addr) ip_types.IP4Address {
	if addr.Is4() {
		return addr.As4()
	}
	return ip_types.IP4Address{}
}

// FrameHeaderSize is the size of the header in front of every frame: 8 bytes that belong to the
// sender, the payload length, 4 bytes that belong to the sender. Only the length means anything to
// the receiver.
const FrameHeaderSize = 16

// errFrameTooBig is returned when the length field of a frame header exceeds the limit.
var errFrameTooBig = errors.New("frame too big")

// FrameReader cuts the byte stream of one connection into frame payloads, however the frames were
// split or coalesced on the way.
type FrameReader struct {
	r   *bufio.Reader
	max uint32
	buf bytes.Buffer // grows only as fast as bytes arrive
}

// NewFrameReader returns a reader of frames with at most limit payload bytes.
func NewFrameReader(r io.Reader, limit uint32) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// Next returns the payload of the next frame. The slice is valid until the next call. io.EOF means
// that the stream ended between two frames.
func (f *FrameReader) Next() ([]byte, error) {
	var header [FrameHeaderSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[8:12])
	if length > f.max {
		return nil, fmt.Errorf("frame of %d bytes: %w", length, errFrameTooBig)
	}
	f.buf.Reset()
	_, err := io.CopyN(&f.buf, f.r, int64(length))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return slices.Clip(f.buf.Bytes()), err // a message must not be decoded past its end
}

// Numbering is the numbering of the messages in one incarnation of VPP.
type Numbering struct {
	byID    map[uint16]*Message
	idOf    map[string]uint16
	Entries []memclnt.MessageTableEntry
}

// Message ids of incarnation n start at idBase + n*idStride: no number means two different messages
// in neighbouring incarnations, so a client that kept a stale id talks into the void instead of
// doing something else by luck.
const (
	idBase   = 100
	idStride = 1024
	idCycles = 60
)

// Number assigns ids for incarnation n. sockclnt_create and its reply keep their fixed ids;
// everything else is shuffled.
func (cat *Catalog) Number(n uint64) *Numbering {
	t := &Numbering{
		byID: make(map[uint16]*Message, len(cat.Names)),
		idOf: make(map[string]uint16, len(cat.Names)),
	}
	next := uint16(idBase + n%idCycles*idStride)
	// A stride that is coprime to the number of names visits each once.
	step := 7919 % len(cat.Names)
	for gcd(step, len(cat.Names)) != 1 {
		step++
	}
	at := int(n % uint64(len(cat.Names)))
	for range cat.Names {
		name := cat.Names[at]
		at = (at + step) % len(cat.Names)
		id := next
		switch name {
		case "sockclnt_create":
			id = IDSockclntCreate
		case "sockclnt_create_reply":
			id = IDSockclntCreateReply
		default:
			next++
		}
		t.add(cat.Named(name), id)
	}
	t.deleteLast()
	return t
}

// Of returns the id of a message.
func (t *Numbering) Of(name string) uint16 { return t.idOf[name] }

// Message returns the message with an id, nil if there is none.
func (t *Numbering) Message(id uint16) *Message { return t.byID[id] }

// add gives a message its id, with a name that is cut as VPP does.
func (t *Numbering) add(m *Message, id uint16) {
	t.byID[id] = m
	t.idOf[m.Name] = id
	t.Entries = append(t.Entries, memclnt.MessageTableEntry{Index: id, Name: m.table[:min(len(m.table), maxTableName)]})
}

// deleteLast moves sockclnt_delete behind its reply: GoVPP takes the last entry whose name starts
// with sockclnt_delete_ for the request.
func (t *Numbering) deleteLast() {
	for i, e := range t.Entries {
		if t.byID[e.Index].Name == "sockclnt_delete" {
			t.Entries = append(slices.Delete(t.Entries, i, i+1), e)
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
