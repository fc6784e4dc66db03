package mirror

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/durable"
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

// apiService is the key of the Service that every API server makes for itself.
const apiService = "default/kubernetes"

// clusterOf returns the UID of the Service default/kubernetes, "" if it has none.
func clusterOf(s *messages.Snapshot) string {
	for _, in := range s.GetServices() {
		if in.GetKey() == apiService {
			return in.GetService().GetUid()
		}
	}
	return ""
}

// identity is the part of a state by which a later state is recognised as one of the same cluster.
type identity struct {
	node, source string
	cluster      string          // for people
	uids         map[string]bool // UIDs of the nodes and of the Service default/kubernetes
	services     int
	revision     uint64
	saved        int64
}

// identify returns the identity of a state, so that the state itself need not stay in memory.
func identify(m *messages.Mirror) *identity {
	id := &identity{
		node: m.GetNode(), source: m.GetSource(), cluster: m.GetCluster(), uids: map[string]bool{},
		services: len(m.GetSnapshot().GetServices()), revision: m.GetRevision(), saved: m.GetSaved(),
	}
	if id.cluster != "" {
		id.uids[id.cluster] = true
	}
	// All nodes count, because the Service default/kubernetes or this node may have been created
	// again.
	for _, n := range m.GetSnapshot().GetNode().GetNodes() {
		if uid := n.GetUid(); uid != "" {
			id.uids[uid] = true
		}
	}
	return id
}

// same reports whether two states belong to one cluster. One common UID is enough, so the answer
// does not change when default/kubernetes, or all nodes except one, are created again.
func (id *identity) same(other *identity) bool {
	// YAML written by hand has no UIDs. Then the place from which it was read decides.
	if len(id.uids) == 0 || len(other.uids) == 0 {
		return id.source == other.source
	}
	for uid := range id.uids {
		if other.uids[uid] {
			return true
		}
	}
	return false
}

// usable returns the reason why a state must not be served on a node; nil if it may be served. It
// does not compare clusters, because the cluster of the source is not known before the source
// answers.
func (id *identity) usable(node string) error {
	// The pods and node addresses belong to one node. A disk that was moved must not serve them on
	// another node.
	if id.node != node {
		return fmt.Errorf("it belongs to node %q", id.node)
	}
	return nil
}

// Names of the files in the directory of a Store.
const (
	snapshotName  = "snapshot"
	claimName     = "claim"
	damagedSuffix = ".damaged" // could not be read
	foreignSuffix = ".foreign" // state of another cluster
)

// ErrNone says that nothing has been saved.
var ErrNone = errors.New("there is no mirror yet")

// Store is one directory with a mirror; the first save creates it. The methods may be called from
// any goroutine. Each method takes effect completely or not at all.
type Store struct {
	dir   string
	files durable.FS
}

// NewStore returns the Store of a directory, which need not exist. It does nothing yet.
func NewStore(dir string, files durable.FS) *Store { return &Store{dir: dir, files: files} }

// Clean removes the unfinished files of interrupted saves.
func (s *Store) Clean() error {
	if err := durable.Clean(s.files, s.dir, ""); err != nil {
		return fmt.Errorf("clean directory of the local mirror: %w", err)
	}
	return nil
}

// Snapshot returns the state that was saved last, marked as the state of an earlier run: not
// complete, with generations of 0. ErrNone says that there is none. A file that cannot be used is
// renamed, and the error has both names.
func (s *Store) Snapshot() (*messages.Mirror, error) { return load(s, snapshotName, decodeMirror) }

// SaveSnapshot replaces the state.
func (s *Store) SaveSnapshot(m *messages.Mirror) error { return s.save(snapshotName, kindSnapshot, m) }

// Claim returns the claim that was saved last, with the errors of Snapshot.
func (s *Store) Claim() (*messages.MirroredClaim, error) { return load(s, claimName, decodeClaim) }

// SaveClaim replaces the claim.
func (s *Store) SaveClaim(m *messages.MirroredClaim) error { return s.save(claimName, kindClaim, m) }

// PutForeignAside renames the file with the state of another cluster, and returns its new path.
func (s *Store) PutForeignAside() (string, error) { return s.putAside(snapshotName, foreignSuffix) }

// load reads a file and renames it if it is damaged.
func load[M any](s *Store, name string, decode func([]byte) (M, error)) (M, error) {
	var none, m M
	path := filepath.Join(s.dir, name)
	data, err := s.files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, ErrNone
	case errors.Is(err, durable.ErrUnreadable):
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	case err == nil:
		m, err = decode(data)
	}
	switch {
	case err == nil:
		return m, nil
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion):
		// An error of the disk says nothing about the file, which may be readable later.
		return none, fmt.Errorf("read local mirror %s: %w", path, err)
	}
	kept, aside := s.putAside(name, damagedSuffix)
	if aside != nil {
		return none, fmt.Errorf("read local mirror %s: %w; it cannot be renamed: %w", path, err, aside)
	}
	return none, fmt.Errorf("read local mirror %s: %w; it is kept as %s", path, err, kept)
}

// putAside renames a file, so that it is neither used nor overwritten. It replaces an older file
// with the new name.
func (s *Store) putAside(name, suffix string) (string, error) {
	from := filepath.Join(s.dir, name)
	if err := s.files.Rename(from, from+suffix); err != nil {
		return "", fmt.Errorf("put local mirror aside: %w", err)
	}
	return from + suffix, s.files.SyncDir(s.dir)
}

// save replaces a file.
func (s *Store) save(name string, k kind, m proto.Message) error {
	path := filepath.Join(s.dir, name)
	data, err := encode(k, m)
	if err == nil {
		err = durable.Replace(s.files, path, data)
	}
	if err != nil {
		return fmt.Errorf("save local mirror %s: %w", path, err)
	}
	return nil
}
