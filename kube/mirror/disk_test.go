package mirror

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Ends of an operation on a fakeDisk.
var (
	errDied = errors.New("the machine is down")
	errIO   = errors.New("input/output error")
)

// fakeDisk is a file system with a cache, as a machine has: what is done is seen at once, and is on the disk only after Sync and SyncDir. At
// one of its steps it fails, or the machine dies.
type fakeDisk struct {
	names   map[string]*inode // as they are seen
	durable map[string]*inode // as they are on the disk
	pending []rename          // of names, not on the disk yet, in order
	made    int

	step int
	stop int  // step that does not end well, from 1; 0 = none
	dies bool // at that step, and then everything fails; otherwise only that step does
	late bool // the step has its effect all the same
	dead bool
}

// inode is a file.
type inode struct{ cached, synced []byte }

// rename is one change of names; to nil = removed.
type rename struct {
	name string
	to   *inode
}

func newFakeDisk() *fakeDisk {
	return &fakeDisk{names: map[string]*inode{}, durable: map[string]*inode{}}
}

// next counts a step. effect says whether it has its effect.
func (d *fakeDisk) next() (effect bool, err error) {
	if d.dead {
		return false, errDied
	}
	if d.step++; d.step != d.stop {
		return true, nil
	}
	if d.dead = d.dies; d.dies {
		return d.late, errDied
	}
	return d.late, errIO
}

func (d *fakeDisk) set(name string, to *inode) {
	if to == nil {
		delete(d.names, name)
	} else {
		d.names[name] = to
	}
	d.pending = append(d.pending, rename{name, to})
}

// killed is the disk after the process was killed: the cache is whole.
func (d *fakeDisk) killed() *fakeDisk {
	d.dead, d.stop = false, 0
	return d
}

// rebooted is the disk after the machine has lost its power: of the changes of names the first few happened, and of what was written
// without Sync only some of the bytes are there.
func (d *fakeDisk) rebooted(changes int, bytes float64) *fakeDisk {
	out := newFakeDisk()
	names := maps.Clone(d.durable)
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
			data = file.cached[:int(bytes*float64(len(file.cached)))]
		}
		survivor := &inode{cached: slices.Clone(data), synced: slices.Clone(data)}
		out.names[name], out.durable[name] = survivor, survivor
	}
	return out
}

// MkdirAll satisfies FS.
func (d *fakeDisk) MkdirAll(string) error {
	_, err := d.next()
	return err
}

// ReadFile satisfies FS.
func (d *fakeDisk) ReadFile(name string) ([]byte, error) {
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
func (d *fakeDisk) Create(dir, prefix, suffix string) (File, error) {
	effect, err := d.next()
	d.made++
	f := &fakeFile{disk: d, inode: &inode{}, name: dir + "/" + prefix + strings.Repeat("x", d.made) + suffix}
	if effect {
		d.set(f.name, f.inode)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Leftovers satisfies FS.
func (d *fakeDisk) Leftovers(dir, suffix string) ([]string, error) {
	if _, err := d.next(); err != nil {
		return nil, err
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasPrefix(name, dir+"/") && strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
	}
	return found, nil
}

// Rename satisfies FS.
func (d *fakeDisk) Rename(from, to string) error {
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
func (d *fakeDisk) Remove(name string) error {
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
func (d *fakeDisk) SyncDir(string) error {
	effect, err := d.next()
	if effect {
		d.durable, d.pending = maps.Clone(d.names), nil
	}
	return err
}

// fakeFile is a file of a fakeDisk that is being written.
type fakeFile struct {
	disk *fakeDisk
	*inode
	name string
}

// Name satisfies File.
func (f *fakeFile) Name() string { return f.name }

// Write satisfies io.Writer. One that fails has written half.
func (f *fakeFile) Write(data []byte) (int, error) {
	_, err := f.disk.next()
	n := len(data)
	if err != nil {
		n /= 2
	}
	f.cached = append(f.cached, data[:n]...)
	return n, err
}

// Sync satisfies File.
func (f *fakeFile) Sync() error {
	effect, err := f.disk.next()
	if effect {
		f.synced = slices.Clone(f.cached)
	}
	return err
}

// Close satisfies File.
func (f *fakeFile) Close() error {
	_, err := f.disk.next()
	return err
}
