package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Named reports whether a file of this name is read: *.json, *.yaml, *.yml, and not hidden.
func Named(name string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name)) && !strings.HasPrefix(name, ".")
}

// directory is the content that was read from a directory. It belongs to one goroutine.
type directory struct {
	path    string
	files   map[string]*file   // by name
	earlier *normalize.Objects // objects of an earlier run; nil after the first scan
	last    *content           // of the last scan; nil before the first
	stale   bool               // a file was read or removed since then
	settle  time.Duration      // how long a file that became shorter waits before it counts
}

// content is the joined content of all files of a directory.
type content struct {
	objects  *normalize.Objects
	problems []*messages.ObjectError
	// unreadable is the reason why a file could not be read; "" if all files could be read.
	unreadable string
	// again is when a file that lost objects has settled; 0 = there is none.
	again time.Duration
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

	// A file that became shorter and lost objects may be half-written. waits is how long it still
	// waits; 0 = it does not. shorter is its new content, first seen at since.
	waits   time.Duration
	shorter [sha256.Size]byte
	since   time.Time
}

// settle is the default of directory.settle. A file without any object waits emptied times longer:
// "kubectl get > FILE" empties the file, and writes it when the API server has answered.
const (
	settle  = 3 * time.Second
	emptied = 10
)

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
		if !Named(name) {
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
				f.read(filepath.Join(d.path, name), info, err, d)
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
func (f *file) read(path string, info fs.FileInfo, err error, d *directory) {
	name := filepath.Base(path)
	var text []byte
	if err == nil {
		text, err = ReadFile(path, maxFile, fmt.Errorf("is larger than %d MiB", maxFile>>20))
	}
	if err != nil {
		f.broken, f.waits = true, 0
		f.problems = []*messages.ObjectError{{Source: name, Message: fmt.Sprintf("%v; its last content stays", err)}}
		return
	}
	// An unchanged text is not decoded again: an event often touches one of many files.
	sum := sha256.Sum256(text)
	if f.info == nil || f.broken || f.waits > 0 || sum != f.sum {
		objects, problems := Decode(bytes.NewReader(text), name)
		now := lastGood(f.objects, objects, problems)
		f.waits = f.wait(now, info, sum, d)
		if f.waits > 0 {
			f.problems = []*messages.ObjectError{{Source: name, Message: "lost objects and may be half-written; its last content stays for a while"}}
			return
		}
		f.objects, f.problems = now, problems
	}
	f.info, f.sum, f.broken, f.waits = info, sum, false, 0
}

// wait returns how long a file waits before its new content counts. A file that was replaced by
// another one is complete.
func (f *file) wait(now *normalize.Objects, info fs.FileInfo, sum [sha256.Size]byte, d *directory) time.Duration {
	atStart := f.info == nil && info.Size() == 0 && d.earlier != nil && count(d.earlier) > 0
	inPlace := f.info != nil && os.SameFile(info, f.info) && info.Size() < f.info.Size() && count(now) < count(f.objects)
	if !atStart && !inPlace && (f.waits == 0 || sum != f.shorter) {
		return 0
	}
	if f.waits == 0 || sum != f.shorter {
		f.shorter, f.since = sum, time.Now()
	}
	least := d.settle
	if count(now) == 0 {
		least *= emptied
	}
	return least - time.Since(f.since)
}

// count returns the number of objects.
func count(o *normalize.Objects) int {
	return len(o.Services) + len(o.Slices) + len(o.Nodes) + len(o.Pods) + len(o.ServiceCIDRs) + len(o.AddressPools)
}

// ReadFile reads a regular file of at most so many bytes; larger is the error for more. Opening a
// pipe would block.
func ReadFile(path string, most int, larger error) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // reading only, nothing can be lost
	text, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(text) > most {
		return nil, larger
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
		if f.waits > 0 && (out.again == 0 || f.waits < out.again) {
			out.again = f.waits
		}
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

// lastGood returns the objects of a file after it was decoded again: the new objects, and the old
// objects that cannot be decoded any more. If a problem does not name its object, all missing old
// objects stay.
func lastGood(old, now *normalize.Objects, problems []*messages.ObjectError) *normalize.Objects {
	broken, unknown := brokenIn(problems)
	there := map[object]bool{}
	out := &normalize.Objects{Ignored: now.Ignored}
	merge(out, now, func(id object) bool {
		there[id] = true
		return false
	})
	// A misspelt name could hide any object of the file; dropping a service by a typo is worse than
	// keeping a deleted one for a while.
	merge(out, old, func(id object) bool { return there[id] || !unknown && !broken[id] })
	return out
}

// brokenIn returns the objects that the problems name. unknown is true if a problem does not name
// its object.
func brokenIn(problems []*messages.ObjectError) (broken map[object]bool, unknown bool) {
	broken = map[object]bool{}
	for _, p := range problems {
		id := object{p.GetKind(), p.GetObject()}
		broken[id] = true
		unknown = unknown || !names(id)
	}
	return broken, unknown
}

// names reports whether id is a valid name of an object. Otherwise it is a place in a file.
func names(id object) bool {
	name := id.name
	if normalize.Namespaced(id.kind) {
		namespace, rest, found := strings.Cut(name, "/")
		if !found || len(validation.IsDNS1123Label(namespace)) > 0 {
			return false
		}
		name = rest
	}
	return versions[id.kind] != "" && len(validation.IsDNS1123Subdomain(name)) == 0
}

// merge appends the objects of from to into, except objects for which skip is true.
func merge(into, from *normalize.Objects, skip func(object) bool) {
	into.Services = appendUnless(into.Services, from.Services, normalize.KindService, normalize.ServiceKey, skip)
	into.Slices = appendUnless(into.Slices, from.Slices, normalize.KindEndpointSlice, normalize.SliceKey, skip)
	into.Nodes = appendUnless(into.Nodes, from.Nodes, normalize.KindNode, (*messages.Node).GetName, skip)
	into.Pods = appendUnless(into.Pods, from.Pods, normalize.KindPod, normalize.PodKey, skip)
	into.ServiceCIDRs = appendUnless(into.ServiceCIDRs, from.ServiceCIDRs, normalize.KindServiceCIDR, cidrKey, skip)
	into.AddressPools = appendUnless(into.AddressPools, from.AddressPools, normalize.KindAddressPool, (*messages.AddressPool).GetName, skip)
}

func cidrKey(c *normalize.ServiceCIDRs) string { return c.Name }

// appendUnless is merge for one kind.
func appendUnless[M any](into, from []M, kind string, key func(M) string, skip func(object) bool) []M {
	for _, m := range from {
		if !skip(object{kind, key(m)}) {
			into = append(into, m)
		}
	}
	return into
}

// sortedNames returns the file names in order. The order decides which file counts if an object
// occurs twice.
func sortedNames(files map[string]*file) []string { return slices.Sorted(maps.Keys(files)) }
