package kube

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/troupe-vpp/troupe/messages"
)

// TestEqualSeesEveryField sets each field of the messages that equal.go compares by hand, so that
// it also finds fields that are added later.
func TestEqualSeesEveryField(t *testing.T) {
	for _, c := range []struct {
		empty   proto.Message
		equal   func(a, b proto.Message) bool
		ignored map[protoreflect.Name]bool
	}{
		{&messages.Endpoint{}, func(a, b proto.Message) bool { return equalEndpoint(a.(*messages.Endpoint), b.(*messages.Endpoint)) }, nil},
		{&messages.EndpointPort{}, func(a, b proto.Message) bool {
			return equalEndpointPort(a.(*messages.EndpointPort), b.(*messages.EndpointPort))
		}, nil},
		{
			&messages.EndpointSlice{}, func(a, b proto.Message) bool {
				return equalSlice(a.(*messages.EndpointSlice), b.(*messages.EndpointSlice))
			},
			map[protoreflect.Name]bool{"triggered": true, "generation": true},
		},
		{
			&messages.ServiceInput{}, func(a, b proto.Message) bool {
				return equalInput(a.(*messages.ServiceInput), b.(*messages.ServiceInput))
			},
			map[protoreflect.Name]bool{"key": true, "generation": true},
		},
	} {
		fields := c.empty.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			changed := proto.Clone(c.empty)
			set(changed.ProtoReflect(), field)
			if got, want := c.equal(c.empty, changed), c.ignored[field.Name()]; got != want {
				t.Errorf("%s: equal in spite of another %s: %t, want %t", c.empty.ProtoReflect().Descriptor().Name(), field.Name(), got, want)
			}
			if !c.equal(changed, proto.Clone(changed)) {
				t.Errorf("%s with %s is not equal to its copy", c.empty.ProtoReflect().Descriptor().Name(), field.Name())
			}
		}
	}
}

// set gives a field a value other than its zero value.
func set(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	scalars := map[protoreflect.Kind]protoreflect.Value{
		protoreflect.StringKind: protoreflect.ValueOfString("x"), protoreflect.BoolKind: protoreflect.ValueOfBool(true),
		protoreflect.Uint32Kind: protoreflect.ValueOfUint32(7), protoreflect.Int64Kind: protoreflect.ValueOfInt64(7),
		protoreflect.Uint64Kind: protoreflect.ValueOfUint64(7), protoreflect.EnumKind: protoreflect.ValueOfEnum(6),
	}
	switch {
	case field.IsList() && field.Message() != nil:
		m.Mutable(field).List().AppendMutable()
	case field.IsList():
		m.Mutable(field).List().Append(scalars[field.Kind()])
	case field.Message() != nil:
		m.Mutable(field)
	default:
		m.Set(field, scalars[field.Kind()])
	}
}
