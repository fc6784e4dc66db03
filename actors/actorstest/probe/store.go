package probe

import (
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Store is a store of attachments that can be broken. It is used on the goroutine of the simulation
// only.
type Store struct {
	// Saved is what was saved last.
	Saved *messages.Attachments
	// Broken is the error of every call; nil = it works.
	Broken error
	// Saves counts calls of Save.
	Saves int
}

// Load satisfies interfaces.Store.
func (s *Store) Load() (*messages.Attachments, error) { return s.Saved, s.Broken }

// Save satisfies interfaces.Store.
func (s *Store) Save(all *messages.Attachments) error {
	if s.Saves++; s.Broken != nil {
		return s.Broken
	}
	s.Saved = all
	return nil
}

// Text lists what is saved, as "POD=INTERFACE".
func (s *Store) Text() string {
	var all []string
	for _, a := range s.Saved.GetItems() {
		all = append(all, a.GetPod()+"="+a.GetInterface())
	}
	return strings.Join(all, " ")
}
