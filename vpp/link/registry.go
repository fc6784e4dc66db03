package link

import (
	"reflect"
	"strings"

	"go.fd.io/govpp/api"
)

// registry finds the messages that belong to a request among all messages of the imported binding
// packages. It is built once per Link and only read afterwards.
type registry struct {
	// byName holds the messages of every family of bindings (directory of the generated
	// packages) by their name without CRC, so that two generations of bindings linked into one
	// binary do not mix.
	byName map[string]map[string]api.Message
}

// kind is the shape of an answer.
type kind uint8

const (
	// kindReply is one reply.
	kindReply kind = iota
	// kindDump is any number of details and nothing that says that they are complete.
	kindDump
	// kindCursor is any number of details and one reply with retval and cursor.
	kindCursor
)

// shape is a request and its answers, as the bindings know them; nothing of it depends on the
// connected VPP.
type shape struct {
	kind    kind
	reply   api.Message
	details api.Message
}

// newRegistry indexes the registered messages. Binding packages register in their init functions,
// so nothing is added later.
func newRegistry() *registry {
	r := &registry{byName: map[string]map[string]api.Message{}}
	for family, registered := range api.GetRegisteredMessages() {
		names := make(map[string]api.Message, len(registered))
		for _, msg := range registered {
			names[msg.GetMessageName()] = msg
		}
		r.byName[family] = names
	}
	return r
}

// shapeOf returns how VPP answers the request: with a message <name>_reply, or for <name>_dump the
// details <name>_details, or for <name>_get with a cursor both. ok is false for messages that are
// no requests.
func (r *registry) shapeOf(req api.Message) (s shape, ok bool) {
	if req.GetMessageType() != api.RequestMessage {
		return s, false
	}
	names := r.byName[family(req)]
	name := req.GetMessageName()
	s.reply = names[name+"_reply"]
	if stem, found := strings.CutSuffix(name, "_dump"); found {
		s.kind, s.details = kindDump, names[stem+"_details"]
		return s, s.details != nil
	}
	if stem, found := strings.CutSuffix(name, "_get"); found && names[stem+"_details"] != nil && hasCursor(req) {
		s.kind, s.details = kindCursor, names[stem+"_details"]
	}
	return s, s.reply != nil
}

// family is the directory of the binding package of a message, under which api.RegisterMessage
// registers it.
func family(msg api.Message) string {
	pkg := reflect.TypeOf(msg).Elem().PkgPath()
	if i := strings.LastIndexByte(pkg, '/'); i >= 0 {
		return pkg[:i]
	}
	return "."
}

// hasCursor reports whether the message has a field for paging.
func hasCursor(msg api.Message) bool {
	field, ok := reflect.TypeOf(msg).Elem().FieldByName("Cursor")
	return ok && field.Type.Kind() == reflect.Uint32
}

// withCursor returns a copy of a paging request for the page at cursor.
func withCursor(req api.Message, cursor uint32) api.Message {
	page := reflect.New(reflect.TypeOf(req).Elem())
	page.Elem().Set(reflect.ValueOf(req).Elem())
	page.Elem().FieldByName("Cursor").SetUint(uint64(cursor))
	return page.Interface().(api.Message)
}

// cursorOf reads the cursor of a paging request or of its reply.
func cursorOf(msg api.Message) uint32 {
	return uint32(reflect.ValueOf(msg).Elem().FieldByName("Cursor").Uint())
}
