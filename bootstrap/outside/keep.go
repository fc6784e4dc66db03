package outside

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
	"strings"

	"github.com/troupe-vpp/troupe/kube/durable"
)

// suffix ends the names of stored documents.
const suffix = ".json"

// Load satisfies external.Sources. Documents of an earlier process are read once.
func (s *Sources) Load(context.Context) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		return maps.Clone(s.kept), nil
	}
	kept := map[string][]byte{}
	if s.cfg.Dir != "" {
		if err := durable.Clean(durable.Disk{}, s.cfg.Dir, ""); err != nil {
			return nil, fmt.Errorf("load external configuration: %w", err)
		}
		entries, err := os.ReadDir(s.cfg.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load external configuration: %w", err)
		}
		for _, e := range entries {
			name, ours := strings.CutSuffix(e.Name(), suffix)
			source, err := url.PathUnescape(name)
			if !ours || err != nil {
				continue
			}
			if kept[source], err = os.ReadFile(filepath.Join(s.cfg.Dir, e.Name())); err != nil {
				return nil, fmt.Errorf("load external configuration of %s: %w", source, err)
			}
		}
	}
	s.kept = kept
	return maps.Clone(kept), nil
}

// Save satisfies external.Sources. A file is replaced as a whole.
func (s *Sources) Save(_ context.Context, source string, document []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// the directory has documents that could not be loaded
	unknown := s.kept == nil && s.cfg.Dir != ""
	if old, known := s.kept[source]; !unknown && known == (document != nil) && bytes.Equal(old, document) {
		return nil
	}
	if s.cfg.Dir != "" {
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
	if s.kept[source] = bytes.Clone(document); document == nil {
		delete(s.kept, source)
	}
	return nil
}

func (s *Sources) write(source string, document []byte) error {
	path := filepath.Join(s.cfg.Dir, url.PathEscape(source)+suffix)
	if document == nil {
		return durable.Remove(durable.Disk{}, path)
	}
	return durable.Replace(durable.Disk{}, path, document)
}
