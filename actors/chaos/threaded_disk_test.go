package chaos

import (
	"sync/atomic"

	"github.com/troupe-vpp/troupe/kube/durable"
)

// brittle is the disk of a world with threads. While it is broken, reads and writes of files fail.
type brittle struct {
	durable.FS
	broken atomic.Bool
}

// ReadFile satisfies durable.FS.
func (b *brittle) ReadFile(name string) ([]byte, error) {
	if b.broken.Load() {
		return nil, durable.ErrIO
	}
	return b.FS.ReadFile(name)
}

// Create satisfies durable.FS.
func (b *brittle) Create(dir, prefix, suffix string) (durable.File, error) {
	if b.broken.Load() {
		return nil, durable.ErrIO
	}
	return b.FS.Create(dir, prefix, suffix)
}
