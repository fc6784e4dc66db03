package actors

import (
	"sync"

	"github.com/troupe-vpp/troupe/messages"
)

// memoryStore keeps attachments as long as the process lives: whoever connects pods tells again after that.
type memoryStore struct {
	mu   sync.Mutex
	told *messages.Attachments
}

// Load satisfies AttachmentStore.
func (s *memoryStore) Load() (*messages.Attachments, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told, nil
}

// Save satisfies AttachmentStore.
func (s *memoryStore) Save(told *messages.Attachments) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = told
	return nil
}
