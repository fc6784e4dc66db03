package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestRecordRoundTrip(t *testing.T) {
	want := &messages.NodeRecord{Id: 3, Name: "n1", Uid: "u-1"}
	value, err := encodeRecord(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []parsedKey{{kind: kindID, id: 3}, {kind: kindName, name: "n1"}} {
		got, err := decodeRecord(key, []byte(value))
		if err != nil {
			t.Fatalf("decode under %+v: %v", key, err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("record changed on the way (-want +got):\n%s", diff)
		}
	}
}

func TestDecodeRecordRefuses(t *testing.T) {
	id3, n1 := parsedKey{kind: kindID, id: 3}, parsedKey{kind: kindName, name: "n1"}
	for name, c := range map[string]struct {
		key   parsedKey
		value string
	}{
		"empty":             {id3, ``},
		"no JSON":           {id3, `hello`},
		"not an object":     {id3, `[3]`},
		"wrong type":        {id3, `{"id":"three","name":"n1"}`},
		"negative":          {id3, `{"id":-3,"name":"n1"}`},
		"another ID":        {id3, `{"id":4,"name":"n1"}`},
		"no ID":             {n1, `{"name":"n1"}`},
		"another name":      {n1, `{"id":3,"name":"n2"}`},
		"no name":           {id3, `{"id":3}`},
		"name with a slash": {id3, `{"id":3,"name":"a/b"}`},
		"long UID":          {id3, `{"id":3,"name":"n1","uid":"` + strings.Repeat("u", maxUID+1) + `"}`},
		"too large":         {id3, `{"id":3,"name":"n1"}` + strings.Repeat(" ", maxRecord)},
	} {
		if got, err := decodeRecord(c.key, []byte(c.value)); !errors.Is(err, ErrUndecodable) {
			t.Errorf("%s: got %v, %v, want ErrUndecodable", name, got, err)
		}
	}
}

// TestDecodeNewerRecord reads a record with fields of a later version.
func TestDecodeNewerRecord(t *testing.T) {
	got, err := decodeRecord(parsedKey{kind: kindID, id: 3}, []byte(`{"id":3,"name":"n1","rack":{"row":7}}`))
	if err != nil || got.GetId() != 3 {
		t.Errorf("got %v, %v, want ID 3 and the unknown field ignored", got, err)
	}
}

func TestCanonicalAddresses(t *testing.T) {
	for name, c := range map[string]struct{ in, want, invalid []string }{
		"none":                     {},
		"order and repetition":     {in: []string{"10.0.0.2/24", "10.0.0.1/24", "10.0.0.2/24"}, want: []string{"10.0.0.1/24", "10.0.0.2/24"}},
		"the length counts":        {in: []string{"10.0.0.1/24", "10.0.0.1/16"}, want: []string{"10.0.0.1/16", "10.0.0.1/24"}},
		"host bits stay":           {in: []string{"192.168.16.7/24"}, want: []string{"192.168.16.7/24"}},
		"IPv6 in canonical form":   {in: []string{"2001:DB8:0::1/64"}, want: []string{"2001:db8::1/64"}},
		"IPv4 in IPv6":             {in: []string{"::ffff:10.0.0.1/120"}, want: []string{"10.0.0.1/24"}},
		"no length, no address":    {in: []string{"10.0.0.1", "x", " 10.0.0.1/8 "}, want: []string{"10.0.0.1/8"}, invalid: []string{"10.0.0.1", "x"}},
		"a zone is not an address": {in: []string{"fe80::1%eth0/64"}, invalid: []string{"fe80::1%eth0/64"}},
	} {
		got, invalid := canonicalAddresses(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.invalid, invalid); diff != "" {
			t.Errorf("%s, invalid ones (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecodeAddresses(t *testing.T) {
	key := parsedKey{kind: kindAddresses, name: "n1"}
	got, err := decodeAddresses(key, []byte(`{"name":"n1","vppAddresses":["10.0.0.2/24","10.0.0.1/24"]}`))
	if err != nil || !cmp.Equal(got.GetVppAddresses(), []string{"10.0.0.1/24", "10.0.0.2/24"}) {
		t.Errorf("got %v, %v, want both addresses in order", got, err)
	}
	for _, value := range []string{`{"name":"n2"}`, `{"name":"n1","vppAddresses":["10.0.0.1"]}`, `?`, strings.Repeat(" ", maxAddresses+1)} {
		if got, err := decodeAddresses(key, []byte(value)); !errors.Is(err, ErrUndecodable) {
			t.Errorf("%.40s: got %v, %v, want ErrUndecodable", value, got, err)
		}
	}
}

func TestEncodeTooLarge(t *testing.T) {
	if _, err := encodeRecord(&messages.NodeRecord{Id: 1, Name: strings.Repeat("n", maxRecord)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

// FuzzDecode gives arbitrary bytes to every decoder: no decoder panics, and an accepted value is
// the same after it was written and read again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":3,"name":"n1","uid":"u"}`))
	f.Add([]byte(`{"name":"n1","vppAddresses":["10.0.0.1/24","2001:db8::1/64"]}`))
	f.Add([]byte(`{"id":4294967296}`))
	f.Add([]byte(`{"id":3,"id":4,"name":"n1"}`))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, key := range []parsedKey{{kind: kindID, id: 3}, {kind: kindName, name: "n1"}} {
			if record, err := decodeRecord(key, value); err == nil {
				again(t, record, encodeRecord, func(b []byte) (*messages.NodeRecord, error) { return decodeRecord(key, b) })
			}
		}
		key := parsedKey{kind: kindAddresses, name: "n1"}
		if stored, err := decodeAddresses(key, value); err == nil {
			again(t, stored, encodeAddresses, func(b []byte) (*messages.NodeAddresses, error) { return decodeAddresses(key, b) })
		}
	})
}

// again writes and reads a value. "Too large" is no failure, because the canonical form may be a
// little longer than the accepted bytes.
func again[T proto.Message](t *testing.T, value T, encode func(T) (string, error), decode func([]byte) (T, error)) {
	t.Helper()
	text, err := encode(value)
	if errors.Is(err, ErrTooLarge) {
		return
	}
	if err != nil {
		t.Fatalf("encode %v: %v", value, err)
	}
	got, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	if !proto.Equal(value, got) {
		t.Fatalf("%v became %v", value, got)
	}
}
