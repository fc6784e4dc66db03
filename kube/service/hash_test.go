package service_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// fullView returns a view in which every field of every message is set, also fields that are added
// later.
func fullView() *messages.ServiceView {
	view := &messages.ServiceView{}
	fill(view.ProtoReflect())
	return view
}

// fill sets all fields; lists get two different elements.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !field.IsList() {
			m.Set(field, element(m.NewField(field), field, 1))
			continue
		}
		list := m.Mutable(field).List()
		for n := range 2 {
			list.Append(element(list.NewElement(), field, n+1))
		}
	}
}

// element returns the n-th value of a field; all n give different values.
func element(empty protoreflect.Value, field protoreflect.FieldDescriptor, n int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		fill(empty.Message())
		return empty
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(field.Name()) + string(rune('0'+n)))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(field.Enum().Values().Get(n).Number())
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	default:
		panic("teach the test about " + field.Kind().String())
	}
}

// variations makes every possible single change of the message. It calls check after each and
// undoes the change.
func variations(m protoreflect.Message, path string, check func(path string)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		here := path + "." + string(field.Name())
		old := m.Get(field)
		switch {
		case field.IsList():
			varyList(m, field, here, check)
		case field.Message() != nil:
			variations(m.Mutable(field).Message(), here, check)
			m.Clear(field)
			check(here + " cleared")
			m.Set(field, old)
		default:
			m.Clear(field)
			check(here + " cleared")
			m.Set(field, element(m.NewField(field), field, 2))
			check(here + " changed")
			m.Set(field, old)
		}
	}
}

func varyList(m protoreflect.Message, field protoreflect.FieldDescriptor, path string, check func(path string)) {
	list := m.Mutable(field).List()
	first, second := list.Get(0), list.Get(1)
	if field.Message() != nil {
		variations(first.Message(), path+"[0]", check)
		variations(second.Message(), path+"[1]", check)
	} else {
		list.Set(0, second)
		check(path + "[0] changed")
		list.Set(1, first)
		check(path + " swapped")
		list.Set(0, first)
		list.Set(1, second)
	}
	list.Truncate(1)
	check(path + " truncated")
	list.Append(second)
}

// TestHashSeesEveryField: Hash notices a change of any single field of a view, also of fields that
// are added later.
func TestHashSeesEveryField(t *testing.T) {
	base, view := fullView(), fullView()
	if service.Hash(base) != service.Hash(view) {
		t.Fatal("two equal views differ")
	}
	changes := 0
	variations(view.ProtoReflect(), "view", func(path string) {
		changes++
		if service.Hash(base) == service.Hash(view) {
			t.Errorf("Hash does not see %s", path)
		}
	})
	if service.Hash(base) != service.Hash(view) || !proto.Equal(base, view) {
		t.Fatal("the test does not undo its changes")
	}
	if changes < 50 {
		t.Errorf("only %d changes tried", changes)
	}
}

func TestHashOfNoView(*testing.T) { service.Hash(nil) }

func TestHashSeparatesNeighbours(t *testing.T) {
	a := service.Hash(&messages.ServiceView{Key: "ab", Uid: "c"})
	b := service.Hash(&messages.ServiceView{Key: "a", Uid: "bc"})
	if a == b {
		t.Error("the border between two fields is not hashed")
	}
}
