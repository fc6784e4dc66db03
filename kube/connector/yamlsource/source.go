package yamlsource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/files/watch"
)

// Source reads a file, or each *.yaml, *.yml and *.json file of a directory, without hidden files.
// It is a catalog.Source.
type Source struct {
	path   string
	limits catalog.Limits
	log    *slog.Logger
	pace   watch.Pace

	// Only the goroutine of Run uses the fields below.
	publish func(catalog.Snapshot)
	known   bool // something was published
	sum     [sha256.Size]byte
	last    catalog.Snapshot
}

// New returns a source that reads path. If there is a directory at path when Run starts, path is a
// directory, otherwise a file.
func New(path string, limits catalog.Limits, log *slog.Logger) *Source {
	return &Source{path: filepath.Clean(path), limits: limits, log: log, pace: watch.DefaultPace()}
}

// Run satisfies catalog.Source. It never fails: an unreadable file is a problem of an incomplete
// snapshot.
func (s *Source) Run(ctx context.Context, publish func(catalog.Snapshot)) error {
	s.publish = publish
	dir := s.path
	if info, err := os.Stat(s.path); err != nil || !info.IsDir() {
		dir = filepath.Dir(s.path)
	}
	watch.Run(ctx, dir, s.pace, s.log, s.look, nil, nil)
	return nil
}

// look reads the files and publishes. Without a change it publishes only at a poll. Events follow
// each other while a file is written, and must not confirm its unfinished content.
func (s *Source) look(event bool) {
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
	var out catalog.Snapshot
	for _, c := range contents {
		services, errs := Decode(c.text)
		if c.err != nil {
			errs = []error{c.err}
		}
		out.Services = append(out.Services, services...)
		for _, err := range errs {
			out.Problems = append(out.Problems, catalog.Problem{Reason: catalog.ReasonSource, Message: c.name + ": " + err.Error()})
		}
	}
	out.Complete = len(out.Problems) == 0
	s.known, s.sum, s.last = true, sum, catalog.Clean(out, s.limits)
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
func (s *Source) read() (out []content) {
	left := s.limits.Body
	paths, err := s.paths()
	if err != nil {
		return []content{{name: filepath.Base(s.path), err: err}}
	}
	for _, path := range paths {
		text, err := readFile(path, left)
		left -= len(text)
		out = append(out, content{filepath.Base(path), text, err})
	}
	return out
}

// paths returns the paths of the files, ordered.
func (s *Source) paths() ([]string, error) {
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
		known := slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name()))
		if known && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			out = append(out, filepath.Join(s.path, e.Name()))
		}
	}
	return out, nil
}

// readFile reads a regular file of at most the given size in bytes. Opening a pipe would block.
func readFile(path string, most int) ([]byte, error) {
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
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > most {
		return nil, errors.New("the catalog is too large")
	}
	return text, nil
}
