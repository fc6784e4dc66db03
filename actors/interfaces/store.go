package interfaces

import (
	"sync"

	"github.com/troupe-vpp/troupe/messages"
)

// MemoryStore is a Store that lasts as long as the process. Afterwards the component that connects
// pods has to attach them again.
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

// Store keeps the attachments over restarts of the actor, and of the process where it can. Its
// methods are called from goroutines of actors, one at a time.
type Store interface {
	// Load returns what was saved last; nothing saved is no error.
	Load() (*messages.Attachments, error)
	// Save replaces the saved attachments; after an error the earlier ones are still there.
	Save(*messages.Attachments) error
}
