package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	small     = 64 << 10 // decoded bytes of an answer that may be read without a turn
	turns     = 2        // larger answers read at the same time
	partBytes = 1 << 20  // decoded bytes of one element, which is in memory as a whole
	keptText  = 128      // kept bytes of a text in an answer, except of a name
)

// answer reads the decompressed body of an answer as it arrives. It limits the bytes of the answer
// and of one element. An answer that is not small waits for a turn. So all answers under way share
// one memory budget: each connection has "small" bytes, and only an answer with a turn has more.
type answer struct {
	ctx   context.Context
	in    io.Reader
	turns chan struct{} // holds one token for each taken turn
	most  int           // bytes
	read  int
	part  int // bytes of the current element
	large bool
}

func (a *answer) Read(p []byte) (int, error) {
	if !a.large && a.read+len(p) > small {
		select {
		case a.turns <- struct{}{}:
			a.large = true
		case <-a.ctx.Done():
			return 0, a.ctx.Err()
		}
	}
	p = p[:min(len(p), a.most-a.read+1, partBytes-a.part+1)]
	n, err := a.in.Read(p)
	a.read += n
	a.part += n
	switch {
	case a.read > a.most:
		return 0, own("the answer is too large: more than %d bytes", a.most)
	case a.part > partBytes:
		return 0, own("an element of the answer is too large: more than %d bytes", partBytes)
	}
	return n, err
}

// close gives the turn back.
func (a *answer) close() {
	if a.large {
		<-a.turns
	}
}

// walk decodes the elements of the answer, which is an array or an object, and calls step for each.
// It holds one element at a time, and ends with the first error.
func (a *answer) walk(what string, open json.Delim, step func(*json.Decoder) error) error {
	d := json.NewDecoder(a)
	err := a.begin(d, open)
	for n := 1; err == nil && d.More(); n++ {
		a.part = 0
		if err = step(d); err != nil {
			err = own("element %d: %w", n, harmless(err))
		}
	}
	if err == nil {
		err = a.end(d)
	}
	if err != nil {
		return fmt.Errorf("decode the %s: %w", what, harmless(err))
	}
	return nil
}

// begin reads the opening bracket.
func (*answer) begin(d *json.Decoder, open json.Delim) error {
	token, err := d.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return own("the answer is null")
	case token != open:
		return own("the answer does not begin with %s", open)
	}
	return nil
}

// end reads the closing bracket, after which nothing may follow.
func (*answer) end(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	_, err := d.Token()
	switch {
	case err == nil:
		return own("more follows after the answer")
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// each calls take with each element of an answer that is an array.
func each[T any](a *answer, what string, take func(T) error) error {
	return a.walk(what, '[', func(d *json.Decoder) error {
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		return take(one)
	})
}

// kept returns the beginning of a text, without keeping the rest in memory.
func kept(text string, most int) string { return strings.Clone(text[:min(len(text), most)]) }
