package mirror

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

func sortByKey(in []*messages.ServiceInput) {
	slices.SortFunc(in, func(a, b *messages.ServiceInput) int { return cmp.Compare(a.GetKey(), b.GetKey()) })
}

func encoded(t testing.TB, k kind, m proto.Message) []byte {
	t.Helper()
	data, err := encode(k, m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDecodeIsTheInverse: decode is the inverse of encode, except for fields without meaning in
// another run. The same state gives the same bytes.
func TestDecodeIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMirror(t)
		data, err := encode(kindSnapshot, m)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := encode(kindSnapshot, proto.CloneOf(m)); !bytes.Equal(data, again) {
			t.Error("the same state gives other bytes")
		}
		got, err := decodeMirror(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(earlier(m), got, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestClaimIsKept(t *testing.T) {
	want := &messages.MirroredClaim{Id: 7, Node: "n1", Uid: "u", Prefix: "/troupe/v1", Saved: 1}
	got, err := decodeClaim(encoded(t, kindClaim, want))
	if diff := gocmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// resum gives a changed file a checksum that fits.
func resum(data []byte) []byte {
	sum := sha256.Sum256(data[:len(data)-sha256.Size])
	return append(slices.Clone(data[:len(data)-sha256.Size]), sum[:]...)
}

func TestDecodeRefuses(t *testing.T) {
	whole := encoded(t, kindSnapshot, &messages.Mirror{Revision: 1, Node: "n1", Snapshot: cluster("a", service("web", 1))})
	changed := func(change func(data []byte) []byte) []byte { return change(slices.Clone(whole)) }
	for name, tt := range map[string]struct {
		data []byte
		is   error
		says string
	}{
		"nothing":         {nil, ErrDamaged, "only 0 bytes"},
		"zeros":           {make([]byte, len(whole)), ErrDamaged, "does not begin"},
		"something else":  {[]byte(strings.Repeat("apiVersion: v1\n", 10)), ErrDamaged, "does not begin"},
		"one byte more":   {append(slices.Clone(whole), 0), ErrDamaged, "bytes instead of"},
		"another version": {changed(func(d []byte) []byte { binary.BigEndian.PutUint32(d[8:], 2); return resum(d) }), ErrVersion, "2, expected 1"},
		"a claim":         {encoded(t, kindClaim, &messages.MirroredClaim{Id: 1, Node: strings.Repeat("n", 40)}), ErrVersion, "kind 2"},
		"no protobuf": {changed(func(d []byte) []byte {
			for i := headerSize; i < len(d)-sha256.Size; i++ {
				d[i] = 0xff
			}
			return resum(d)
		}), ErrDamaged, "proto"},
		"a service twice": {
			encoded(t, kindSnapshot, &messages.Mirror{Snapshot: cluster("a", service("web", 1), service("web", 2))}), ErrDamaged, "comes after",
		},
		"a service without a key": {encoded(t, kindSnapshot, &messages.Mirror{Snapshot: cluster("a", &messages.ServiceInput{})}), ErrDamaged, "comes after"},
	} {
		if _, err := decodeMirror(tt.data); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tt.is, tt.says)
		}
	}
	if _, err := decodeClaim(encoded(t, kindClaim, &messages.MirroredClaim{Node: "n1"})); !errors.Is(err, ErrDamaged) {
		t.Errorf("a claim to no ID: %v", err)
	}
}

// TestEveryDamageIsSeen: a file that is cut off anywhere, or has a wrong bit, is never read.
func TestEveryDamageIsSeen(t *testing.T) {
	whole := encoded(t, kindSnapshot, &messages.Mirror{Revision: 1, Node: "n1", Snapshot: cluster("a", service("web", 1))})
	seen := func(what string, at int, data []byte) {
		if _, err := decodeMirror(data); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			t.Errorf("%s %d: %v", what, at, err)
		}
	}
	for i := range whole {
		seen("cut off at", i, whole[:i])
	}
	for bit := range 8 * len(whole) {
		data := slices.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		seen("bit", bit, data)
	}
}

// TestFieldsOfANewerVersionAreDropped: an older agent reads the files of a newer agent, as long as
// the format is the same.
func TestFieldsOfANewerVersionAreDropped(t *testing.T) {
	m := &messages.Mirror{Revision: 3, Snapshot: cluster("a")}
	newer := proto.CloneOf(m)
	newer.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7))
	got, err := decodeMirror(encoded(t, kindSnapshot, newer))
	if diff := gocmp.Diff(earlier(m), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// FuzzDecode: no bytes stop the process. A decoded state is marked as the state of an earlier run,
// and saving it gives the same state again. The test corrects the checksum, so that the code after
// the check is reached.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, kindSnapshot, &messages.Mirror{Revision: 1, Node: "n1", Snapshot: cluster("a", service("web", 1))}))
	f.Add(encoded(f, kindClaim, &messages.MirroredClaim{Id: 1, Node: "n1"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, data)
		if len(data) >= headerSize+sha256.Size {
			fit := slices.Clone(data)
			copy(fit, magic)
			binary.BigEndian.PutUint32(fit[8:], FormatVersion)
			binary.BigEndian.PutUint64(fit[16:], uint64(len(fit)-headerSize-sha256.Size))
			check(t, resum(fit))
		}
	})
}

func check(t *testing.T, data []byte) {
	if c, err := decodeClaim(data); err == nil && c.GetId() == 0 {
		t.Error("a claim to no ID")
	} else if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
		t.Errorf("claim: %v", err)
	}
	m, err := decodeMirror(data)
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			t.Errorf("state: %v", err)
		}
		return
	}
	if m.GetSnapshot().GetComplete() || m.GetSnapshot().GetGeneration() != 0 || m.GetSnapshot().GetNode().GetGeneration() != 0 {
		t.Errorf("it is not of an earlier run: %v", m)
	}
	identify(m)
	again, err := decodeMirror(encoded(t, kindSnapshot, m))
	if diff := gocmp.Diff(m, again, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("saved again: %v (-want +got)\n%s", err, diff)
	}
}
