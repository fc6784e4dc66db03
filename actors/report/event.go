package report

import (
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Event sends an event to the journal, with the path of the sender.
func Event(c *runtime.Context, e *messages.Event) {
	e.Actor = c.Path()
	c.Send(c.PID(address.Journal), e)
}
