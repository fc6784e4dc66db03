package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// extensions of the files that are read.
var extensions = []string{".json", ".yaml", ".yml"}

// directory is the content that was read from a directory. It belongs to one goroutine.
type directory struct {
	path    string
	files   map[string]*file   // by name
	earlier *normalize.Objects // objects of an earlier run; nil after the first scan
	last    *content           // of the last scan; nil before the first
	stale   bool               // a file was read or removed since then
}

// content is the joined content of all files of a directory.
type content struct {
	objects  *normalize.Objects
	problems []*messages.ObjectError
	// unreadable is the reason why a file could not be read; "" if all files could be read.
	unreadable string
	// unchanged is true if no file has changed since the previous scan.
	unchanged bool
}

// file is the last state of one file.
type file struct {
	info     fs.FileInfo // when it was read last
	sum      [sha256.Size]byte
	objects  *normalize.Objects // last good
	problems []*messages.ObjectError
	broken   bool // the last attempt to read it failed
}

// scan reads the directory. Files that look unchanged are not read again unless force is set. force
// is needed after an event, because two changes may have the same file time. After an error the
// previous content stays.
func (d *directory) scan(force bool) (content, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return content{}, fmt.Errorf("list directory: %w", err)
	}
	present, vanished := map[string]bool{}, false
	var reads sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)) // decoding takes a whole core
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains(extensions, filepath.Ext(name)) {
			continue
		}
		// follows the symlinks of ConfigMap volumes
		info, err := os.Stat(filepath.Join(d.path, name))
		// A dangling symlink may be half a swap of a ConfigMap: its file counts as unreadable, not
		// as gone.
		gone := errors.Is(err, fs.ErrNotExist) && entry.Type()&fs.ModeSymlink == 0
		if gone || err == nil && info.IsDir() {
			vanished = vanished || gone
			continue
		}
		present[name] = true
		f := d.files[name]
		if f == nil {
			f = &file{objects: &normalize.Objects{}}
			d.files[name] = f
		}
		if err != nil || force || !f.unchanged(info) {
			d.stale = true
			slots <- struct{}{}
			reads.Go(func() {
				f.read(filepath.Join(d.path, name), info, err)
				<-slots
			})
		}
	}
	reads.Wait()
	if vanished {
		// The directory itself may be gone since it was listed. Then its objects stay.
		if _, err := os.ReadDir(d.path); err != nil {
			return content{}, fmt.Errorf("list directory: %w", err)
		}
	}
	for name := range d.files {
		// The objects of a removed file are gone; only a file that exists keeps its last good
		// state.
		if !present[name] {
			d.stale = true
			delete(d.files, name)
		}
	}
	d.remember()
	if !d.stale && d.last != nil {
		unchanged := *d.last
		unchanged.unchanged = true
		return unchanged, nil
	}
	last := d.join()
	d.last, d.stale = &last, false
	return last, nil
}

// remember gives files that are broken at the first scan their objects of an earlier run. An object
// that occurs in no file goes to the first broken file that may hold it.
func (d *directory) remember() {
	if d.earlier == nil {
		return
	}
	there := map[object]bool{}
	for _, f := range d.files {
		merge(&normalize.Objects{}, f.objects, func(id object) bool {
			there[id] = true
			return true
		})
	}
	for _, name := range sortedNames(d.files) {
		f := d.files[name]
		broken, unknown := brokenIn(f.problems)
		merge(f.objects, d.earlier, func(id object) bool {
			skip := there[id] || !broken[id] && !unknown
			there[id] = there[id] || !skip
			return skip
		})
	}
	d.earlier = nil
}

// unchanged reports whether a file looks as it was when it was read last.
func (f *file) unchanged(info fs.FileInfo) bool {
	return !f.broken && f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime())
}

// read brings a file up to date. info and err are the result of os.Stat.
func (f *file) read(path string, info fs.FileInfo, err error) {
	name := filepath.Base(path)
	var text []byte
	if err == nil {
		text, err = readFile(path, info)
	}
	if err != nil {
		f.broken = true
		f.problems = []*messages.ObjectError{{Source: name, Message: fmt.Sprintf("%v; its last content stays", err)}}
		return
	}
	// An unchanged text is not decoded again: an event often touches one of many files.
	sum := sha256.Sum256(text)
	if f.info == nil || f.broken || sum != f.sum {
		objects, problems := Decode(bytes.NewReader(text), name)
		f.objects, f.problems = lastGood(f.objects, objects, problems), problems
	}
	f.info, f.sum, f.broken = info, sum, false
}

// readFile reads a regular file within the limit of a stream. Opening a pipe would block.
func readFile(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // reading only, nothing can be lost
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("is larger than %d MiB", maxFile>>20)
	}
	return text, err
}

// join merges the files in the order of their names. If an object occurs twice, its first
// occurrence counts.
func (d *directory) join() content {
	out := content{objects: &normalize.Objects{}}
	var reasons []string
	seen := map[object]string{}
	for _, name := range sortedNames(d.files) {
		f := d.files[name]
		out.problems = append(out.problems, f.problems...)
		if f.broken {
			reasons = append(reasons, name+": "+f.problems[0].GetMessage())
		}
		out.objects.Ignored += f.objects.Ignored
		twice := func(id object) bool {
			first, known := seen[id]
			if known {
				out.problems = append(out.problems, &messages.ObjectError{
					Source: name, Kind: id.kind, Object: id.name, Message: fmt.Sprintf("occurs also in %s, which counts", first),
				})
				return true
			}
			seen[id] = name
			return false
		}
		merge(out.objects, f.objects, twice)
	}
	out.unreadable = strings.Join(reasons, "; ")
	return out
}
