package render

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// ErrContested is what a row shows whose address has another owner; RenderAck.conflicts names it.
var ErrContested = errors.New("the address has another owner")

// RowState is what an acknowledgement says of a row; err is its last error, nil = none.
func RowState(renderer string, key fmt.Stringer, inSync bool, err error) *messages.RowState {
	state := &messages.RowState{Renderer: renderer, Vip: key.String(), InSync: inSync}
	if err != nil {
		state.Error = err.Error()
	}
	return state
}

// Unrendered adds parts of a service that there are no means for to its acknowledgement; what says
// what becomes of them: "not rendered".
func Unrendered(ack *messages.RenderAck, what string, parts []*messages.ObjectError) {
	if len(parts) == 0 {
		return
	}
	ack.Unrendered = slices.Concat(ack.GetUnrendered(), parts)
	if ack.GetError() != "" {
		return
	}
	ack.Error = fmt.Sprintf("%s: %s: %s", what, parts[0].GetField(), parts[0].GetMessage())
	if more := len(parts) - 1; more > 0 {
		ack.Error += fmt.Sprintf(" (and %d more)", more)
	}
}
