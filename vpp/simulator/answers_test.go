package simulator

import "testing"

// TestEveryRequestIsAnswered: no request of the table leaves a client waiting, whatever it is,
// except those that kill VPP or that have no reply.
func TestEveryRequestIsAnswered(t *testing.T) {
	v := New(Options{})
	t.Cleanup(func() { _ = v.Close() })
	silent := map[string]bool{"cnat_translation_update": true}
	for _, name := range v.catalog.Names {
		m := v.catalog.Named(name)
		if !m.Request || silent[name] {
			continue
		}
		replies, err := v.Exec(m.Empty())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Reply != nil && len(replies) == 0 {
			t.Errorf("%s: no reply", name)
		}
	}
}
