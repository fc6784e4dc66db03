package wire

import (
	"reflect"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/codec"
)

// TestLayoutsMatchTheCodec: for every request the computed layout agrees with the generated code,
// empty and with two elements in every array.
func TestLayoutsMatchTheCodec(t *testing.T) {
	cat := NewCatalog(nil, func(name string) bool { return name == "sockclnt_create" })
	requests := 0
	for _, name := range cat.Names {
		m := cat.Named(name)
		if !m.Request {
			continue
		}
		requests++
		for _, fill := range []bool{false, true} {
			v := reflect.New(m.typ)
			if fill {
				fillArrays(v.Elem())
			}
			msg, ok := v.Interface().(codec.Marshaler)
			if !ok {
				t.Fatalf("%s has no marshaler", name)
			}
			body, err := msg.Marshal(nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if end, ok := m.layout.measure(body, 0); !ok || end != uint64(len(body)) {
				t.Errorf("%s (filled %t): layout ends at %d (%t), codec at %d", name, fill, end, ok, len(body))
			}
			if len(body) > 0 && m.layout.fits(body[:len(body)-1]) {
				t.Errorf("%s: fits into one byte less", name)
			}
		}
	}
	if requests < 100 {
		t.Errorf("only %d requests in the catalog", requests)
	}
}

// fillArrays puts two elements into every counted array of a message.
func fillArrays(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch f.Kind() {
		case reflect.Slice:
			_, dim, _ := parseTag(v.Type().Field(i).Tag.Get("binapi"))
			if _, fixed := decimal(dim); !fixed {
				f.Set(reflect.MakeSlice(f.Type(), 2, 2))
			}
		case reflect.String:
			if _, dim, _ := parseTag(v.Type().Field(i).Tag.Get("binapi")); dim == "" {
				f.SetString("ab")
			}
		case reflect.Struct:
			fillArrays(f)
		}
	}
}

func TestHostileCounts(t *testing.T) {
	cat := NewCatalog(nil, func(name string) bool { return name == "sockclnt_create" })
	for _, tt := range []struct {
		msg   api.Message
		count []byte // at the end of the payload
		fits  bool   // with 64 kB behind it
	}{
		{&nat44_ed.Nat44AddDelLbStaticMapping{}, []byte{0xff, 0xff, 0xff, 0xff}, false},
		{&nat44_ed.Nat44AddDelLbStaticMapping{}, []byte{0, 0, 0, 1}, true},
		{&ip.IPRouteAddDel{}, []byte{255}, true},
	} {
		m := cat.Named(tt.msg.GetMessageName())
		payload, err := codec.EncodeMsg(tt.msg, 1)
		if err != nil {
			t.Fatal(err)
		}
		copy(payload[len(payload)-len(tt.count):], tt.count)
		if _, ok := m.Decode(payload); ok {
			t.Errorf("%s with count %x was decoded", m.Name, tt.count)
		}
		if _, ok := m.Decode(append(payload, make([]byte, 1<<16)...)); ok != tt.fits {
			t.Errorf("%s with count %x and 64 kB: decoded %t", m.Name, tt.count, ok)
		}
	}
}

func TestParseTag(t *testing.T) {
	for tag, want := range map[string][3]string{
		"nat44_lb_addr_port[local_num],name=locals": {"nat44_lb_addr_port", "local_num", "locals"},
		"string[64],name=tag":                       {"string", "64", "tag"},
		"string[],name=cmd":                         {"string", "", "cmd"},
		"bool,name=is_add,default=true":             {"bool", "", "is_add"},
		"":                                          {"", "", ""},
	} {
		if typ, dim, name := parseTag(tag); [3]string{typ, dim, name} != want {
			t.Errorf("%q: %q %q %q", tag, typ, dim, name)
		}
	}
	for s, want := range map[string]int{"": -1, "12": 12, "1x": -1, "99999999": -1} {
		n, ok := decimal(s)
		if ok != (want >= 0) || (ok && n != want) {
			t.Errorf("decimal(%q) = %d, %t", s, n, ok)
		}
	}
}
