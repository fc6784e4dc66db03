package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// YAML reads a file, or each *.yaml, *.yml and *.json file of a directory, without hidden files.
// It is a catalog.Source.
type YAML struct {
	path   string
	limits Limits
	log    *slog.Logger
	pace   files.Pace

	// Only the goroutine of Run uses the fields below.
	publish func(Snapshot)
	known   bool // something was published
	sum     [sha256.Size]byte
	last    Snapshot
}

// NewYAML returns a source that reads path. If there is a directory at path when Run starts, path
// is a directory, otherwise a file.
func NewYAML(path string, limits Limits, log *slog.Logger) *YAML {
	return &YAML{path: filepath.Clean(path), limits: limits, log: log, pace: files.DefaultPace()}
}

// Run satisfies catalog.Source. It never fails: an unreadable file is a problem of an incomplete
// snapshot.
func (s *YAML) Run(ctx context.Context, publish func(Snapshot)) error {
	s.publish = publish
	dir := s.path
	if info, err := os.Stat(s.path); err != nil || !info.IsDir() {
		dir = filepath.Dir(s.path)
	}
	files.Watch(ctx, dir, s.pace, s.log, s.look, nil, nil)
	return nil
}

// look reads the files and publishes. Without a change it publishes only at a poll. Events follow
// each other while a file is written, and must not confirm its unfinished content.
func (s *YAML) look(event bool) {
	contents, hash := s.read(), sha256.New()
	for _, c := range contents {
		fmt.Fprintf(hash, "%q %d %v\n", c.name, len(c.text), c.err) // never fails
		hash.Write(c.text)
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if s.known && sum == s.sum {
		if !event {
			again := s.last
			again.Repeated = true
			s.publish(again)
		}
		return
	}
	var out Snapshot
	for _, c := range contents {
		services, errs := DecodeYAML(c.text)
		if c.err != nil {
			errs = []error{c.err}
		}
		out.Services = append(out.Services, services...)
		for _, err := range errs {
			out.Problems = append(out.Problems, Problem{Reason: ReasonSource, Message: c.name + ": " + err.Error()})
		}
	}
	out.Complete = len(out.Problems) == 0
	s.known, s.sum, s.last = true, sum, Clean(out, s.limits)
	for _, p := range s.last.Problems {
		s.log.Warn("catalog file not usable", "file", s.path, "err", p.String())
	}
	s.publish(s.last)
}

// content is the content of one file, or the reason why it could not be read.
type content struct {
	name string
	text []byte
	err  error
}

// read returns the contents of the files, ordered by name.
func (s *YAML) read() (out []content) {
	left := s.limits.Body
	paths, err := s.paths()
	if err != nil {
		return []content{{name: filepath.Base(s.path), err: err}}
	}
	for _, path := range paths {
		text, err := files.ReadFile(path, left, errors.New("the catalog is too large"))
		left -= len(text)
		out = append(out, content{filepath.Base(path), text, err})
	}
	return out
}

// paths returns the paths of the files, ordered.
func (s *YAML) paths() ([]string, error) {
	info, err := os.Stat(s.path) // follows the symlinks of ConfigMap volumes
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{s.path}, nil
	}
	entries, err := os.ReadDir(s.path) // ordered by name
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if files.Named(e.Name()) && !e.IsDir() {
			out = append(out, filepath.Join(s.path, e.Name()))
		}
	}
	return out, nil
}

// expansion is the number of nodes that aliases and merges may add to all documents of a file.
const expansion = 400_000

// DecodeYAML reads all documents of a file. After an error nothing of the file is used. Each error
// has one line.
func DecodeYAML(content []byte) (services []Service, errs []error) {
	documents, problem := strictyaml.Parse(content)
	budget := strictyaml.Budget(expansion)
	d := &strictyaml.Decoder{Budget: &budget, NullKeeps: true}
	for _, document := range documents {
		budget += strictyaml.Size(document)
		var more []Service
		d.Read(document.Content[0], "", strictyaml.Object(map[string]strictyaml.Value{"services": strictyaml.List(&more, serviceFields)}))
		services = append(services, more...)
	}
	if problem != nil { // no YAML: the rest cannot be read
		d.Problems = append(d.Problems, problem)
	}
	for _, p := range d.Sorted() {
		services, errs = nil, append(errs, p)
	}
	return services, errs
}

func serviceFields(s *Service) strictyaml.Value {
	fields := strictyaml.Object(map[string]strictyaml.Value{
		"name": strictyaml.Text(&s.Name), "ports": strictyaml.List(&s.Ports, portFields), "instances": strictyaml.List(&s.Instances, instanceFields),
	})
	return func(d *strictyaml.Decoder, n *strictyaml.Node, path string) {
		before := len(d.Problems)
		fields(d, n, path)
		if s.Name == "" && len(d.Problems) == before {
			d.Fail(n.Line, path, "name is missing")
		}
	}
}

func portFields(p *Port) strictyaml.Value {
	return strictyaml.Object(map[string]strictyaml.Value{
		"name": strictyaml.Text(&p.Name), "port": portNumber(func(n uint16) { p.Number = n }),
		"protocol": strictyaml.Scalar("one of TCP, UDP, SCTP", func(text string) bool {
			p.Protocol = text
			return slices.Contains([]string{"TCP", "UDP", "SCTP"}, text)
		}, "!!str"),
	})
}

func instanceFields(i *Instance) strictyaml.Value {
	ports := strictyaml.Map(func(name string) strictyaml.Value {
		return portNumber(func(n uint16) { i.Ports[name] = n })
	})
	return strictyaml.Object(map[string]strictyaml.Value{
		"address": strictyaml.Text(&i.Address), "zone": strictyaml.Text(&i.Zone),
		"ports": func(d *strictyaml.Decoder, n *strictyaml.Node, path string) {
			i.Ports = map[string]uint16{} // also of an instance without ports: it serves none
			ports(d, n, path)
		},
		"healthy": strictyaml.Scalar("true or false", func(text string) bool {
			// also as YAML 1.1 wrote booleans
			at := slices.Index([]string{"true", "y", "yes", "on", "false", "n", "no", "off"}, strings.ToLower(text))
			if at >= 4 {
				i.State = NotReady
			}
			return at >= 0
		}, "!!bool", "!!str"),
	})
}

// portNumber reads the number of a port.
func portNumber(set func(uint16)) strictyaml.Value {
	return strictyaml.Scalar("a port, 1 to 65535", func(text string) bool {
		n, err := strconv.ParseUint(text, 0, 16)
		set(uint16(n))
		return err == nil && n > 0
	}, "!!int")
}
