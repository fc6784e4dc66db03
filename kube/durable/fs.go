package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mostBytes is the size of the largest file that is read. The state of a hundred thousand services
// needs a tenth of it.
const mostBytes = 1 << 30

// ErrUnreadable says that a path leads to a directory, a pipe, or a huge file. ReadFile reads none
// of these.
var ErrUnreadable = errors.New("not a readable file")

// FS are the operations on files that this package needs. Names are paths. The effect of an
// operation survives the death of the process at once. It survives the death of the machine only
// after Sync of the file and SyncDir of its directory.
type FS interface {
	// MkdirAll makes a directory with its parents; only the owner may access it.
	MkdirAll(dir string) error
	// ReadFile reads a whole file. The error is fs.ErrNotExist if there is none, and
	// ErrUnreadable if it will never be readable.
	ReadFile(name string) ([]byte, error)
	// Create makes a new file in a directory, which only the owner may access. Its name is
	// unused: prefix, random characters, suffix.
	Create(dir, prefix, suffix string) (File, error)
	// Find lists the paths of the files in a directory whose names have the prefix and the
	// suffix. A missing directory has no files.
	Find(dir, prefix, suffix string) ([]string, error)
	// Rename gives a file another name, and replaces a file that has this name.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir makes the changes of names in a directory durable.
	SyncDir(dir string) error
}

// File is a file that is being written.
type File interface {
	io.Writer
	// Name is the path of the file.
	Name() string
	// Sync makes the written bytes durable.
	Sync() error
	// Close closes the file.
	Close() error
}

// Disk is the file system of the machine.
type Disk struct{}

var _ FS = Disk{}

// MkdirAll satisfies FS.
func (Disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// ReadFile satisfies FS. Opening a pipe would block, and a huge file would not fit.
func (Disk) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is no regular file", ErrUnreadable)
	case info.Size() > mostBytes:
		return nil, fmt.Errorf("%w: it is larger than %d MiB", ErrUnreadable, mostBytes>>20)
	}
	return os.ReadFile(name)
}

// Create satisfies FS.
func (Disk) Create(dir, prefix, suffix string) (File, error) {
	return os.CreateTemp(dir, prefix+"*"+suffix)
}

// Find satisfies FS.
func (Disk) Find(dir, prefix, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) && e.Type().IsRegular() {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, err
}

// Rename satisfies FS.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// Remove satisfies FS.
func (Disk) Remove(name string) error { return os.Remove(name) }

// SyncDir satisfies FS.
func (Disk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Unfinished ends the name of a file while it is written.
const Unfinished = ".tmp"

// Replace gives a file new content, and makes its directory if it is missing. After an error the
// file has the old content, or the new content if only the sync of the directory failed.
func Replace(files FS, path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	f, err := files.Create(dir, filepath.Base(path)+".", Unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = files.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, files.Remove(f.Name()))
	}
	return files.SyncDir(dir)
}

// Remove removes a file for good. A missing file is no error.
func Remove(files FS, path string) error {
	err := files.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}

// Clean removes the unfinished files that interrupted calls of Replace left in a directory, if
// their names begin with the prefix.
func Clean(files FS, dir, prefix string) error {
	names, err := files.Find(dir, prefix, Unfinished)
	for _, name := range names {
		err = errors.Join(err, files.Remove(name))
	}
	return err
}
