package class

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

func TestOf(t *testing.T) {
	const none, object, downstream = messages.Reach_REACH_NONE, messages.Reach_REACH_OBJECT, messages.Reach_REACH_DOWNSTREAM
	refusal := &link.RetvalError{Message: "nat44_add_del_lb_static_mapping", Retval: -1}
	for name, tt := range map[string]struct {
		err   error
		class Class
		reach messages.Reach
	}{
		"no error":                           {nil, None, none},
		"VPP refuses":                        {refusal, Retry, object},
		"VPP refuses, with a meaning":        {fmt.Errorf("add row: %w: %w", batch.ErrRejected, refusal), Retry, object},
		"any other error":                    {io.ErrUnexpectedEOF, Retry, object},
		"the row exists":                     {fmt.Errorf("add row: %w: %w", nat44.ErrExists, refusal), Resync, object},
		"the row is gone":                    {nat44.ErrVanished, Resync, object},
		"the plugin is disabled":             {nat44.ErrDisabled, Resync, downstream},
		"no answer":                          {fmt.Errorf("add row: %w", link.ErrUnknown), Resync, downstream},
		"no answer, connection lost":         {errors.Join(link.ErrDown, link.ErrUnknown), Resync, downstream},
		"not sent":                           {fmt.Errorf("%w: %w", link.ErrNotSent, link.ErrDown), Wait, none},
		"no connection":                      {link.ErrDown, Wait, none},
		"refused by the guard of the link":   {fmt.Errorf("add: %w: %w", nat44.ErrUnsafe, link.ErrRefused), Abort, object},
		"VPP does not know the message":      {link.ErrUnsupported, Abort, object},
		"an unsafe row":                      {nat44.ErrUnsafe, Abort, object},
		"an unsafe rule":                     {acl.ErrUnsafe, Abort, object},
		"an unsafe route":                    {routes.ErrUnsafe, Abort, object},
		"routes are not supported":           {fmt.Errorf("%w: %w", routes.ErrUnsupported, link.ErrUnsupported), Abort, object},
		"deadline of a command":              {fmt.Errorf("attach: %w", ErrTooLate), Abort, none},
		"restart during a command":           {ErrInterrupted, Abort, none},
		"deadline":                           {context.DeadlineExceeded, Abort, none},
		"cancelled":                          {context.Canceled, Abort, none},
		"a command that is not rolled back":  {errors.Join(refusal, ErrNotReverted), Resync, downstream},
		"children fail too often":            {fmt.Errorf("dataplane: %w", runtime.ErrBudget), Actor, none},
		"the system shuts down":              {runtime.ErrShutdown, Process, none},
		"the origin knows that it is fatal":  {fmt.Errorf("read: %w", Fatal(Process, io.EOF)), Process, none},
		"what is known weighs more than why": {Fatal(Actor, link.ErrDown), Actor, none},
	} {
		if k, reach := Of(tt.err); k != tt.class || reach != tt.reach {
			t.Errorf("%s: %s, %s; want %s, %s", name, k, reach, tt.class, tt.reach)
		}
	}
	var answer *link.RetvalError
	if err := Fatal(Actor, refusal); !errors.As(err, &answer) || !errors.Is(Fatal(Actor, io.EOF), io.EOF) || err.Error() != refusal.Error() {
		t.Error("a classified error hides its cause")
	}
}

// TestTable: every class has a word, and no line of the table is hidden by an earlier one.
func TestTable(t *testing.T) {
	words := map[string]bool{}
	for k := None; k <= Process; k++ {
		words[k.String()] = true
	}
	if len(words) != 7 {
		t.Errorf("words %v", words)
	}
	for _, l := range table() {
		if k, reach := Of(l.is); k != l.class || reach != l.reach {
			t.Errorf("%v is %s in the table and classified as %s", l.is, l.class, k)
		}
	}
}

// TestLost: errors after which the link reports the next connection.
func TestLost(t *testing.T) {
	for err, want := range map[error]bool{
		link.ErrDown: true, link.ErrNotSent: true, link.ErrUnknown: true, link.ErrUnsupported: false, io.EOF: false, ErrTooLate: false,
	} {
		if got := Lost(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
	if Lost(nil) {
		t.Error("no error says that the connection has ended")
	}
}
