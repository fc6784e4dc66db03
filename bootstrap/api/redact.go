package api

import (
	"context"
	"encoding/json"
	"fmt"
)

// Redacted is a Reader without the bodies of messages and the states of actors. It keeps types,
// keys and numbers.
type Redacted struct{ Reader }

// Mailbox satisfies Reader.
func (r Redacted) Mailbox(ctx context.Context, path string) (*Mailbox, error) {
	box, err := r.Reader.Mailbox(ctx, path)
	if err != nil {
		return nil, err
	}
	for i := range box.Messages {
		box.Messages[i].Body = nil
	}
	return box, nil
}

// State satisfies Reader.
func (r Redacted) State(ctx context.Context, path string) (json.RawMessage, error) {
	if _, err := r.Reader.Actor(ctx, path); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("state of %s: %w: only the control socket shows it, because api.redactMessages is set", path, ErrForbidden)
}
