package mirror

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// FormatVersion is the version of the file format. It changes only when an older agent would
// misread a newer file. New fields in the messages do not change it.
const FormatVersion = 1

// A file is a header, the message in protobuf, and the SHA-256 of both. Numbers are big-endian.
const (
	magic      = "TROUPEMI"
	headerSize = len(magic) + 4 + 4 + 8 // magic, version, kind, length of the message
)

// kind says which message a file holds, so that files under swapped names are not misread.
type kind uint32

const (
	kindSnapshot kind = 1 // messages.Mirror
	kindClaim    kind = 2 // messages.MirroredClaim
)

// Errors of decoding. Both mean that the file cannot be used.
var (
	// ErrDamaged says that the bytes differ from the bytes that were written.
	ErrDamaged = errors.New("the file is damaged")
	// ErrVersion says that the file has another version of the format, or holds another message.
	ErrVersion = errors.New("the file has another version")
)

// encode makes the bytes of a file. The same message gives the same bytes.
func encode(k kind, m proto.Message) ([]byte, error) {
	out := make([]byte, headerSize, headerSize+proto.Size(m)+sha256.Size)
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(out, m)
	if err != nil {
		return nil, err
	}
	copy(out, magic)
	binary.BigEndian.PutUint32(out[8:], FormatVersion)
	binary.BigEndian.PutUint32(out[12:], uint32(k))
	binary.BigEndian.PutUint64(out[16:], uint64(len(out)-headerSize))
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// decode reads the bytes of a file. Fields that this version does not know are dropped.
func decode(data []byte, k kind, into proto.Message) error {
	switch {
	case len(data) < headerSize+sha256.Size:
		return fmt.Errorf("%w: it has only %d bytes", ErrDamaged, len(data))
	case string(data[:len(magic)]) != magic:
		return fmt.Errorf("%w: it does not begin like a mirror", ErrDamaged)
	}
	// The version is checked before the checksum, because a newer format may have another checksum.
	if version := binary.BigEndian.Uint32(data[8:]); version != FormatVersion {
		return fmt.Errorf("%w: %d, expected %d", ErrVersion, version, FormatVersion)
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if length := binary.BigEndian.Uint64(data[16:]); length != uint64(len(body)-headerSize) {
		return fmt.Errorf("%w: it holds %d bytes instead of %d", ErrDamaged, len(body)-headerSize, length)
	}
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return fmt.Errorf("%w: the checksum does not fit", ErrDamaged)
	}
	if got := kind(binary.BigEndian.Uint32(data[12:])); got != k {
		return fmt.Errorf("%w: it holds a message of kind %d, expected %d", ErrVersion, got, k)
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body[headerSize:], into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// decodeMirror reads a state and marks it as the state of an earlier run: not complete, and older
// than every delivery of a source.
func decodeMirror(data []byte) (*messages.Mirror, error) {
	m := &messages.Mirror{}
	if err := decode(data, kindSnapshot, m); err != nil {
		return nil, err
	}
	if m.Snapshot == nil {
		m.Snapshot = &messages.Snapshot{}
	}
	if m.Snapshot.Node == nil {
		m.Snapshot.Node = &messages.NodeInput{}
	}
	// The saved generations belong to the earlier run; this run counts from the start.
	m.Snapshot.Complete, m.Snapshot.Generation, m.Snapshot.Node.Generation = false, 0, 0
	last := ""
	for _, in := range m.Snapshot.Services {
		// A state is saved in the order of its keys; another order means that the file has another
		// origin.
		if in.GetKey() <= last {
			return nil, fmt.Errorf("%w: service %q comes after %q", ErrDamaged, in.GetKey(), last)
		}
		in.Generation, last = 0, in.GetKey()
	}
	return m, nil
}

// decodeClaim reads a claim. A claim without an ID is damaged.
func decodeClaim(data []byte) (*messages.MirroredClaim, error) {
	m := &messages.MirroredClaim{}
	if err := decode(data, kindClaim, m); err != nil {
		return nil, err
	}
	if m.GetId() == 0 {
		return nil, fmt.Errorf("%w: the node ID is 0", ErrDamaged)
	}
	return m, nil
}
