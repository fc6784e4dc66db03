package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// ErrTooLarge means that a server or an archive has more than the reader takes.
var ErrTooLarge = errors.New("above the limit of size")

// Budget is a number of bytes that may still be read, for several answers together. Others choose
// the sizes of answers and the number of pages, so everything that they send is read from one. It
// is safe for concurrent use, where it may be exceeded by one answer of each user.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of so many bytes.
func NewBudget(size int64) *Budget {
	b := &Budget{}
	b.left.Store(size)
	return b
}

// Read reads all, at most so many bytes and what is left. The error is ErrTooLarge if there is
// more; then nothing is left.
func (b *Budget) Read(from io.Reader, most int64) ([]byte, error) {
	limit := min(most, b.left.Load())
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	if b.left.Add(-int64(len(content))); err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		b.left.Store(0)
		return nil, ErrTooLarge
	}
	return content, nil
}

// Limits of the density of a document. An object of the API takes 24 bytes of JSON and more; "{}"
// takes two, and a hundred times that when it is decoded.
const (
	leastObject  = 24   // bytes for each object, on average
	smallObjects = 4096 // for which that does not matter
)

// Decode decodes a JSON document of another program. It refuses a document with so many objects in
// so few bytes that decoding would multiply its size.
func Decode(content []byte, into any) error {
	if n := bytes.Count(content, []byte("{")) + bytes.Count(content, []byte("[")); n > smallObjects+len(content)/leastObject {
		return fmt.Errorf("%d objects in %d bytes: %w", n, len(content), ErrTooLarge)
	}
	return json.Unmarshal(content, into)
}
