package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// ownedFile stores the record of the agent's own objects in VPP, in a file at this path.
type ownedFile string

var _ owned.Store = ownedFile("")

// Load satisfies owned.Store.
func (f ownedFile) Load() ([]byte, error) {
	// an unfinished file does no harm
	_ = durable.Clean(durable.Disk{}, filepath.Dir(string(f)), filepath.Base(string(f))+".")
	content, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Save satisfies owned.Store.
func (f ownedFile) Save(document []byte) error {
	if err := durable.Replace(durable.Disk{}, string(f), document); err != nil {
		return fmt.Errorf("save %s: %w", f, err)
	}
	return nil
}
