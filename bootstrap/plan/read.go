package plan

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// Read decodes the named files, in order: "-" is stdin, a directory stands for the *.yaml, *.yml
// and *.json in it, ordered by name. If two files have the same object, the first one counts and
// the second one is a problem. The error is about a file that cannot be read.
func Read(names []string, stdin io.Reader) (*normalize.Objects, []*messages.ObjectError, error) {
	all := merger{objects: &normalize.Objects{}, from: map[string]string{}}
	for _, name := range names {
		paths, err := expand(name)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range paths {
			if err := all.file(path, stdin); err != nil {
				return nil, nil, err
			}
		}
	}
	return all.objects, all.problems, nil
}

// expand returns the files of a directory, or the name itself.
func expand(name string) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name) // ordered by name
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			paths = append(paths, filepath.Join(name, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("read objects: directory %s has no *.yaml, *.yml or *.json", name)
	}
	return paths, nil
}

// merger joins the objects of several files.
type merger struct {
	objects  *normalize.Objects
	problems []*messages.ObjectError
	from     map[string]string // kind and key of an object -> file
}

// file decodes one file and joins its objects.
func (m *merger) file(path string, stdin io.Reader) error {
	in, name := stdin, "stdin"
	if path != Stdin {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read objects: %w", err)
		}
		defer f.Close()
		in, name = f, path
	}
	objects, problems := files.Decode(in, name)
	m.problems = append(m.problems, problems...)
	o := m.objects
	o.Services = join(m, name, normalize.KindService, o.Services, objects.Services, normalize.ServiceKey)
	o.Slices = join(m, name, normalize.KindEndpointSlice, o.Slices, objects.Slices, normalize.SliceKey)
	o.Nodes = join(m, name, normalize.KindNode, o.Nodes, objects.Nodes, (*messages.Node).GetName)
	o.Pods = join(m, name, normalize.KindPod, o.Pods, objects.Pods, normalize.PodKey)
	o.ServiceCIDRs = join(m, name, normalize.KindServiceCIDR, o.ServiceCIDRs, objects.ServiceCIDRs, func(c *normalize.ServiceCIDRs) string { return c.Name })
	o.Ignored += objects.Ignored
	return nil
}

// join appends the objects of one file, except objects of earlier files.
func join[T any](m *merger, file, kind string, to, more []T, key func(T) string) []T {
	for _, one := range more {
		id := kind + " " + key(one)
		if first, twice := m.from[id]; twice {
			m.problems = append(m.problems, &messages.ObjectError{
				Source: file, Kind: kind, Object: key(one), Message: "stands in " + first + " too, which counts",
			})
			continue
		}
		m.from[id] = file
		to = append(to, one)
	}
	return to
}
