package link

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	_ "go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/codec"
)

// fill gives the arrays and texts of a value n elements, also of nested values.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f, field := v.Field(i), v.Type().Field(i)
			if dim, _ := parseTag(field.Tag.Get("binapi")); f.Kind() == reflect.Slice && (dim == "" || dim[0] > '9') {
				f.Set(reflect.MakeSlice(f.Type(), n, n))
			}
			if f.Kind() == reflect.String {
				f.SetString("text"[:min(n, 4)])
			}
			fill(f, n)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	}
}

// TestLayoutAgreesWithTheDecoder: for every message of the bindings, a frame fits exactly if the
// generated code can decode it.
func TestLayoutAgreesWithTheDecoder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for key, prototype := range prototypes() {
		in := newIncoming(prototype, 0)
		for n := range 4 {
			msg := reflect.New(in.typ)
			fill(msg.Elem(), n)
			frame, err := codec.EncodeMsg(msg.Interface().(api.Message), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.layout.fits(frame[in.body:]); err != nil {
				t.Errorf("%s with %d elements does not fit: %v", key, n, err)
			}
			if end, _ := in.layout.measure(frame[in.body:], 0); end != len(frame)-in.body {
				t.Errorf("%s with %d elements has %d bytes, the layout says %d", key, n, len(frame)-in.body, end)
			}
			for range 20 {
				broken := append([]byte(nil), frame[:in.body+random.IntN(len(frame)-in.body+1)]...)
				value := random.IntN(4)
				if len(broken) > in.body {
					broken[in.body+random.IntN(len(broken)-in.body)] = byte(value)
				}
				fits := in.layout.fits(broken[in.body:])
				if fits != nil && value > 0 {
					continue // the decoder may allocate 2^24 elements and more
				}
				decoded := codec.DecodeMsg(broken[:len(broken):len(broken)], reflect.New(in.typ).Interface().(api.Message))
				if (fits == nil) != (decoded == nil) {
					t.Errorf("%s with %d elements, frame %x: layout says %v, decoder %v", key, n, broken, fits, decoded)
				}
			}
		}
	}
}

// BenchmarkDecode decodes 10,000 details, with and without the check of their counts.
func BenchmarkDecode(b *testing.B) {
	vpp := newFakeVPP()
	for name, msg := range map[string]api.Message{
		"ping":    &memclnt.ControlPingReply{},
		"mapping": row(),
		"route":   &ip.IPRouteV2Details{Route: ip.IPRouteV2{Paths: make([]fib_types.FibPath, 2)}},
		"list":    &acl.ACLDetails{R: nil},
		"output":  &nat44_ed.Nat44EdOutputInterfaceDetails{},
	} {
		in := newIncoming(msg, 0)
		frame := vpp.encode(msg, 1)
		b.Run(name+"/checked", func(b *testing.B) {
			for b.Loop() {
				for range 10_000 {
					if _, err := in.decode(frame); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(name+"/unchecked", func(b *testing.B) {
			for b.Loop() {
				for range 10_000 {
					if err := codec.DecodeMsg(frame, reflect.New(in.typ).Interface().(api.Message)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(name+"/check", func(b *testing.B) {
			for b.Loop() {
				for range 10_000 {
					if err := in.layout.fits(frame[in.body:]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
