package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

// Names of the files in the directory of a Store.
const (
	snapshotName    = "snapshot"
	claimName       = "claim"
	leftover        = ".tmp"     // of a save that was not finished
	damagedSuffix   = ".damaged" // could not be read
	foreignSuffix   = ".foreign" // of another cluster
	snapshotsPrefix = snapshotName + "."
	claimsPrefix    = claimName + "."
)

// ErrNone says that nothing has been saved.
var ErrNone = errors.New("there is no mirror yet")

// Store is one directory with a mirror; it is made when something is saved. The methods may be called from any goroutine; each either happens
// as a whole or not at all.
type Store struct {
	dir string
	fs  FS
}

// NewStore returns the Store of a directory, which need not exist. It does nothing yet.
func NewStore(dir string, files FS) *Store { return &Store{dir: dir, fs: files} }

// Clean clears away what saves that were not finished have left.
func (s *Store) Clean() error {
	names, err := s.fs.Leftovers(s.dir, leftover)
	for _, name := range names {
		err = errors.Join(err, s.fs.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("clear directory of the local mirror: %w", err)
	}
	return nil
}

// Snapshot returns the state that was saved last, as one of an earlier run: not complete, with generations of 0. ErrNone says that there is
// none. A file that cannot be used is put aside, and the error names it and where it is now.
func (s *Store) Snapshot() (*messages.Mirror, error) {
	return load(s, snapshotName, decodeMirror)
}

// SaveSnapshot replaces the state.
func (s *Store) SaveSnapshot(m *messages.Mirror) error {
	return s.save(snapshotName, snapshotsPrefix, kindSnapshot, m)
}

// Claim returns the claim that was saved last, with the errors of Snapshot.
func (s *Store) Claim() (*messages.MirroredClaim, error) {
	return load(s, claimName, decodeClaim)
}

// SaveClaim replaces the claim.
func (s *Store) SaveClaim(m *messages.MirroredClaim) error {
	return s.save(claimName, claimsPrefix, kindClaim, m)
}

// PutForeignAside renames the state, because it is of another cluster than the node is in now, and returns its new path.
func (s *Store) PutForeignAside() (string, error) { return s.putAside(snapshotName, foreignSuffix) }

func load[M any](s *Store, name string, decode func([]byte) (M, error)) (M, error) {
	var none M
	path := filepath.Join(s.dir, name)
	data, err := s.fs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, ErrNone
	}
	var m M
	if err == nil {
		m, err = decode(data)
	}
	switch {
	case err == nil:
		return m, nil
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion): // it may be readable another time
		return none, fmt.Errorf("read local mirror %s: %w", path, err)
	}
	kept, aside := s.putAside(name, damagedSuffix)
	if aside != nil {
		return none, fmt.Errorf("read local mirror %s: %w; it stays there: %w", path, err, aside)
	}
	return none, fmt.Errorf("read local mirror %s: %w; it is kept as %s", path, err, kept)
}

// putAside gives a file another name, so that it is neither used nor overwritten. An older file of that name goes.
func (s *Store) putAside(name, suffix string) (string, error) {
	from := filepath.Join(s.dir, name)
	if err := s.fs.Rename(from, from+suffix); err != nil {
		return "", fmt.Errorf("put local mirror aside: %w", err)
	}
	return from + suffix, s.fs.SyncDir(s.dir)
}

// save writes a new file and puts it in the place of the old one. Whatever fails, the old one is still there, or the new one is.
func (s *Store) save(name, prefix string, k kind, m proto.Message) error {
	path := filepath.Join(s.dir, name)
	data, err := encode(k, m)
	if err == nil {
		err = s.replace(path, prefix, data)
	}
	if err != nil {
		return fmt.Errorf("save local mirror %s: %w", path, err)
	}
	return nil
}

func (s *Store) replace(path, prefix string, data []byte) error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	f, err := s.fs.Create(s.dir, prefix, leftover)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.fs.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, s.fs.Remove(f.Name()))
	}
	return s.fs.SyncDir(s.dir)
}
