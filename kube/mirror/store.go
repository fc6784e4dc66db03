package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
)

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
