package render_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/messages"
)

// TestUnrendered: the first part is named, and how many more there are, unless there is another
// error.
func TestUnrendered(t *testing.T) {
	parts := []*messages.ObjectError{{Field: "ports[a]", Message: "too many"}, {Field: "ports[b]", Message: "no"}}
	ack := &messages.RenderAck{}
	render.Unrendered(ack, "not rendered", nil)
	if ack.GetError() != "" {
		t.Errorf("%v", ack)
	}
	render.Unrendered(ack, "not rendered", parts)
	render.Unrendered(ack, "not guarded", parts[:1])
	if ack.GetError() != "not rendered: ports[a]: too many (and 1 more)" || len(ack.GetUnrendered()) != 3 {
		t.Errorf("%v", ack)
	}
}
