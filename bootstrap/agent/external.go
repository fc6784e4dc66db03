package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/kube/durable"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// lookEvery is the poll interval of the file.
const lookEvery = time.Second

// outsideSources reads external configuration from a file and from etcd, and stores the last
// document of every source, including the control socket. The documents survive restarts of actors
// and, if a directory is configured, of the process. Goroutines of actors call its methods.
type outsideSources struct {
	file    string  // path of a document; "" = there is none
	dir     string  // stores documents; "" = only in memory
	connect connect // returns a client when etcd is there; nil = there is no etcd
	prefix  string  // of all keys in etcd
	node    string

	mu   sync.Mutex        // also while a document is written: no other caller waits for it
	kept map[string][]byte // nil = not loaded
}

var _ external.Sources = (*outsideSources)(nil)

// externalSources makes the sources and the store of external configuration.
func (a *Agent) externalSources() *outsideSources {
	s := &outsideSources{file: a.cfg.External.File, connect: a.etcd, prefix: a.cfg.Etcd.Prefix, node: a.cfg.NodeName}
	if dir := a.cfg.DataDir; dir != "" {
		s.dir = filepath.Join(dir, "external")
	}
	return s
}

func (s *outsideSources) Families() (families []string) {
	if s.file != "" {
		families = append(families, layers.SourceFile)
	}
	if s.connect != nil {
		families = append(families, layers.SourceEtcdPrefix)
	}
	return families
}

func (s *outsideSources) Run(ctx context.Context, out func(external.Update)) error {
	var one sync.Mutex
	tell := func(u external.Update) {
		one.Lock()
		defer one.Unlock()
		out(u)
	}
	var wait sync.WaitGroup
	if s.file != "" {
		wait.Go(func() { s.watchFile(ctx, tell) })
	}
	if s.connect != nil {
		wait.Go(func() { s.watchEtcd(ctx, tell) })
	}
	<-ctx.Done()
	wait.Wait()
	return nil
}

// watchFile polls the file. Unlike events, polling works for files that are mounted, replaced, or
// still missing.
func (s *outsideSources) watchFile(ctx context.Context, out func(external.Update)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := "\x00"
	for {
		content, err := os.ReadFile(s.file)
		u := external.Update{Family: layers.SourceFile, Documents: map[string][]byte{}}
		now := string(content)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			now = "\x01" // a missing file is not an empty one
		case err != nil:
			now, u.Err = "\x02"+err.Error(), fmt.Errorf("read external configuration: %w", err)
		default:
			addDocument(&u, layers.SourceFile, content)
		}
		if now != last {
			last = now
			out(u)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watchEtcd follows the keys of this node and the keys for all nodes.
func (s *outsideSources) watchEtcd(ctx context.Context, out func(external.Update)) {
	client, err := s.connect(ctx)
	if err != nil {
		return // ctx has ended
	}
	etcd.Documents(ctx, client, s.prefix+"/external/", func(found map[string][]byte, err error) {
		u := external.Update{Family: layers.SourceEtcdPrefix, Documents: map[string][]byte{}, Err: err}
		for name, document := range found {
			if node, _, one := strings.Cut(name, "/"); !one || node == s.node {
				addDocument(&u, layers.SourceEtcdPrefix+name, document)
			}
		}
		out(u)
	})
}

// addDocument enters a document.
func addDocument(u *external.Update, source string, document []byte) {
	converted, err := documentJSON(document)
	switch {
	case err == nil:
		u.Documents[source] = converted
	case u.Unreadable == nil:
		u.Unreadable = map[string]error{source: err}
	default:
		u.Unreadable[source] = err
	}
}

// quotes are the parts of the document in an error of the parser.
var quotes = regexp.MustCompile("\"[^\"]*\"?|'[^']*'?|`[^`]*`?")

// documentJSON returns the JSON form of a document in YAML or JSON. The error quotes nothing of the
// document, which may be one with secrets.
func documentJSON(document []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", layers.ErrInvalid, quotes.ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", " "), "…"))
	}
	return out, nil
}

// documentSuffix ends the names of stored documents.
const documentSuffix = ".json"

// Load satisfies external.Sources. Documents of an earlier process are read once.
func (s *outsideSources) Load(context.Context) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		return maps.Clone(s.kept), nil
	}
	kept := map[string][]byte{}
	if s.dir != "" {
		if err := durable.Clean(durable.Disk{}, s.dir, ""); err != nil {
			return nil, fmt.Errorf("load external configuration: %w", err)
		}
		entries, err := os.ReadDir(s.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load external configuration: %w", err)
		}
		for _, e := range entries {
			name, ours := strings.CutSuffix(e.Name(), documentSuffix)
			source, err := url.PathUnescape(name)
			if !ours || err != nil {
				continue
			}
			if kept[source], err = os.ReadFile(filepath.Join(s.dir, e.Name())); err != nil {
				return nil, fmt.Errorf("load external configuration of %s: %w", source, err)
			}
		}
	}
	s.kept = kept
	return maps.Clone(kept), nil
}

// Save satisfies external.Sources. A file is replaced as a whole.
func (s *outsideSources) Save(_ context.Context, source string, document []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// the directory has documents that could not be loaded
	unknown := s.kept == nil && s.dir != ""
	if old, known := s.kept[source]; !unknown && known == (document != nil) && bytes.Equal(old, document) {
		return nil
	}
	if s.dir != "" {
		if err := s.write(source, document); err != nil {
			return fmt.Errorf("keep external configuration of %s: %w", source, err)
		}
	}
	if unknown {
		return nil
	}
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[source] = bytes.Clone(document)
	if document == nil {
		delete(s.kept, source)
	}
	return nil
}

func (s *outsideSources) write(source string, document []byte) error {
	path := filepath.Join(s.dir, url.PathEscape(source)+documentSuffix)
	if document == nil {
		return durable.Remove(durable.Disk{}, path)
	}
	return durable.Replace(durable.Disk{}, path, document)
}
