package cli

import (
	"fmt"
	"io"
	"os"
)

// Streams are the standard streams of a command.
type Streams struct {
	In   io.Reader
	Out  io.Writer
	Errs io.Writer
}

// Read reads a file, or standard input for "-".
func (s Streams) Read(name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	data, err := io.ReadAll(s.In)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return data, nil
}
