package interfaces

import (
	"sync"

	"github.com/troupe-vpp/troupe/messages"
)

// MemoryStore is a Store that lasts as long as the process; the component that connects pods
// attaches them again after that.
type MemoryStore struct {
	mu    sync.Mutex
	saved *messages.Attachments
}

// Load satisfies Store.
func (s *MemoryStore) Load() (*messages.Attachments, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved, nil
}

// Save satisfies Store.
func (s *MemoryStore) Save(attachments *messages.Attachments) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = attachments
	return nil
}
