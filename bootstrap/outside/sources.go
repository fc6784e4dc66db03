package outside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// lookEvery is the poll interval of the file.
const lookEvery = time.Second

// Config is where external configuration comes from.
type Config struct {
	// File is the path of a document; "" = there is none.
	File string
	// Dir stores documents over restarts of the process; "" = they are not stored.
	Dir string
	// Connect returns a client of etcd, when it is there; nil = there is no etcd.
	Connect func(context.Context) (*clientv3.Client, error)
	// Prefix of all keys in etcd.
	Prefix string
	// Node is the name of this node.
	Node string
}

// Sources satisfies external.Sources.
type Sources struct {
	cfg Config

	mu   sync.Mutex        // also while a document is written: no other caller waits for it
	kept map[string][]byte // nil = not loaded
}

var _ external.Sources = (*Sources)(nil)

// New returns the sources of a configuration.
func New(cfg Config) *Sources { return &Sources{cfg: cfg} }

// Families satisfies external.Sources.
func (s *Sources) Families() (families []string) {
	if s.cfg.File != "" {
		families = append(families, layers.SourceFile)
	}
	if s.cfg.Connect != nil {
		families = append(families, layers.SourceEtcdPrefix)
	}
	return families
}

// Run satisfies external.Sources.
func (s *Sources) Run(ctx context.Context, out func(external.Update)) error {
	var one sync.Mutex
	tell := func(u external.Update) {
		one.Lock()
		defer one.Unlock()
		out(u)
	}
	var wait sync.WaitGroup
	if s.cfg.File != "" {
		wait.Go(func() { s.watchFile(ctx, tell) })
	}
	if s.cfg.Connect != nil {
		wait.Go(func() { s.watchEtcd(ctx, tell) })
	}
	<-ctx.Done()
	wait.Wait()
	return nil
}

// watchFile polls the file. Unlike events, polling works for files that are mounted, replaced, or
// still missing.
func (s *Sources) watchFile(ctx context.Context, out func(external.Update)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := "\x00"
	for {
		content, err := os.ReadFile(s.cfg.File)
		u := external.Update{Family: layers.SourceFile, Documents: map[string][]byte{}}
		now := string(content)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			now = "\x01" // a missing file is not an empty one
		case err != nil:
			now, u.Err = "\x02"+err.Error(), fmt.Errorf("read external configuration: %w", err)
		default:
			add(&u, layers.SourceFile, content)
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
func (s *Sources) watchEtcd(ctx context.Context, out func(external.Update)) {
	client, err := s.cfg.Connect(ctx)
	if err != nil {
		return // ctx has ended
	}
	etcd.Documents(ctx, client, s.cfg.Prefix+"/external/", func(found map[string][]byte, err error) {
		u := external.Update{Family: layers.SourceEtcdPrefix, Documents: map[string][]byte{}, Err: err}
		for name, document := range found {
			if node, _, one := strings.Cut(name, "/"); !one || node == s.cfg.Node {
				add(&u, layers.SourceEtcdPrefix+name, document)
			}
		}
		out(u)
	})
}

// add enters a document.
func add(u *external.Update, source string, document []byte) {
	converted, err := JSON(document)
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

// JSON returns the JSON form of a document in YAML or JSON. The error quotes nothing of the
// document, which may be one with secrets.
func JSON(document []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", layers.ErrInvalid, quotes.ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", " "), "…"))
	}
	return out, nil
}
