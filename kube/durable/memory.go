package durable

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Errors of an operation on a Memory.
var (
	// ErrDied says that the machine is down since a step with Dies.
	ErrDied = errors.New("the machine is down")
	// ErrIO is the error of step number Stop.
	ErrIO = errors.New("input/output error")
)

// Memory is an FS for tests and simulations, with a cache like a machine's: an operation is visible
// at once, and survives a crash of the machine only after Sync and SyncDir. With the zero value of
// the exported fields no operation fails. A Memory belongs to one goroutine.
type Memory struct {
	// Step counts the operations so far. Stop is the number of the operation that fails; 0 = none.
	Step, Stop int
	// Dies stops the machine at that step: every later step fails, too.
	Dies bool
	// Late makes the failing step take effect although it returns an error.
	Late bool

	names   map[string]*inode // in the cache, as readers see them
	synced  map[string]*inode // as they are on the disk
	pending []rename          // changes of names that are not on the disk yet, in order
	made    int
	dead    bool
}

var _ FS = (*Memory)(nil)

// inode is a file.
type inode struct{ cached, synced []byte }

// rename is one change of a name; a nil inode means that the name was removed.
type rename struct {
	name string
	to   *inode
}

// NewMemory returns an empty disk.
func NewMemory() *Memory {
	return &Memory{names: map[string]*inode{}, synced: map[string]*inode{}}
}

// next counts a step. effect says whether the step takes effect.
func (d *Memory) next() (effect bool, err error) {
	if d.dead {
		return false, ErrDied
	}
	d.Step++
	if d.Step != d.Stop {
		return true, nil
	}
	d.dead = d.Dies
	if d.Dies {
		return d.Late, ErrDied
	}
	return d.Late, ErrIO
}

// set changes a name; the change is pending until SyncDir.
func (d *Memory) set(name string, to *inode) {
	if to == nil {
		delete(d.names, name)
	} else {
		d.names[name] = to
	}
	d.pending = append(d.pending, rename{name, to})
}

// Put writes a file at once, without a step.
func (d *Memory) Put(name string, content []byte) { d.names[name] = &inode{cached: content} }

// Content returns what a reader of a file sees, without a step; nil = there is no file.
func (d *Memory) Content(name string) []byte {
	if f := d.names[name]; f != nil {
		return f.cached
	}
	return nil
}

// Dead reports whether the machine is down.
func (d *Memory) Dead() bool { return d.dead }

// Killed returns the disk after the process was killed: the cache is complete.
func (d *Memory) Killed() *Memory {
	d.dead, d.Stop = false, 0
	return d
}

// Rebooted returns the disk after a power failure of the machine. The given number of pending name
// changes has reached the disk, and the given part of the bytes that were written without Sync.
func (d *Memory) Rebooted(changes int, part float64) *Memory {
	out := NewMemory()
	names := maps.Clone(d.synced)
	for _, r := range d.pending[:min(changes, len(d.pending))] {
		if r.to == nil {
			delete(names, r.name)
		} else {
			names[r.name] = r.to
		}
	}
	for name, file := range names {
		data := file.synced
		if data == nil {
			data = file.cached[:int(part*float64(len(file.cached)))]
		}
		survivor := &inode{cached: slices.Clone(data), synced: slices.Clone(data)}
		out.names[name], out.synced[name] = survivor, survivor
	}
	return out
}

// MkdirAll satisfies FS.
func (d *Memory) MkdirAll(string) error {
	_, err := d.next()
	return err
}

// ReadFile satisfies FS.
func (d *Memory) ReadFile(name string) ([]byte, error) {
	if _, err := d.next(); err != nil {
		return nil, err
	}
	file := d.names[name]
	if file == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(file.cached), nil
}

// Create satisfies FS.
func (d *Memory) Create(dir, prefix, suffix string) (File, error) {
	effect, err := d.next()
	d.made++
	f := &file{disk: d, inode: &inode{}, name: dir + "/" + prefix + strings.Repeat("x", d.made) + suffix}
	if effect {
		d.set(f.name, f.inode)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Find satisfies FS.
func (d *Memory) Find(dir, prefix, suffix string) ([]string, error) {
	if _, err := d.next(); err != nil {
		return nil, err
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if path.Dir(name) == dir && strings.HasPrefix(path.Base(name), prefix) && strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
	}
	return found, nil
}

// Rename satisfies FS.
func (d *Memory) Rename(from, to string) error {
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	effect, err := d.next()
	if effect {
		file := d.names[from]
		d.set(to, file)
		d.set(from, nil)
	}
	return err
}

// Remove satisfies FS.
func (d *Memory) Remove(name string) error {
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	effect, err := d.next()
	if effect {
		d.set(name, nil)
	}
	return err
}

// SyncDir satisfies FS.
func (d *Memory) SyncDir(string) error {
	effect, err := d.next()
	if effect {
		d.synced, d.pending = maps.Clone(d.names), nil
	}
	return err
}

// file is a file of a Memory that is being written.
type file struct {
	disk *Memory
	*inode
	name string
}

func (f *file) Name() string { return f.name }

// Write satisfies io.Writer. A write that fails has written half of the data.
func (f *file) Write(data []byte) (int, error) {
	_, err := f.disk.next()
	n := len(data)
	if err != nil {
		n /= 2
	}
	f.cached = append(f.cached, data[:n]...)
	return n, err
}

func (f *file) Sync() error {
	effect, err := f.disk.next()
	if effect {
		f.synced = slices.Clone(f.cached)
	}
	return err
}

func (f *file) Close() error {
	_, err := f.disk.next()
	return err
}
