package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

func TestClassify(t *testing.T) {
	const none, object, downstream = messages.Reach_REACH_NONE, messages.Reach_REACH_OBJECT, messages.Reach_REACH_DOWNSTREAM
	refusal := &link.RetvalError{Message: "nat44_add_del_lb_static_mapping", Retval: -1}
	for name, tt := range map[string]struct {
		err   error
		class class
		reach messages.Reach
	}{
		"nothing":                            {nil, classNone, none},
		"VPP refuses":                        {refusal, classRetry, object},
		"VPP refuses, with a meaning":        {fmt.Errorf("add row: %w: %w", nat44.ErrRejected, refusal), classRetry, object},
		"anything else":                      {io.ErrUnexpectedEOF, classRetry, object},
		"the row is there already":           {fmt.Errorf("add row: %w: %w", nat44.ErrExists, refusal), classResync, object},
		"the row is gone":                    {nat44.ErrVanished, classResync, object},
		"the plugin is off":                  {nat44.ErrDisabled, classResync, downstream},
		"no answer":                          {fmt.Errorf("add row: %w", link.ErrUnknown), classResync, downstream},
		"no answer, connection lost":         {errors.Join(link.ErrDown, link.ErrUnknown), classResync, downstream},
		"not sent":                           {fmt.Errorf("%w: %w", link.ErrNotSent, link.ErrDown), classWait, none},
		"no connection":                      {link.ErrDown, classWait, none},
		"kept away by the guard":             {fmt.Errorf("add: %w: %w", nat44.ErrUnsafe, link.ErrRefused), classAbort, object},
		"VPP does not know the message":      {link.ErrUnsupported, classAbort, object},
		"deadline of a command":              {fmt.Errorf("attach: %w", errTooLate), classAbort, none},
		"restart in a command":               {errInterrupted, classAbort, none},
		"deadline":                           {context.DeadlineExceeded, classAbort, none},
		"nobody waits any more":              {context.Canceled, classAbort, none},
		"a command could not be taken back":  {errors.Join(refusal, errNotReverted), classResync, downstream},
		"children fail too often":            {fmt.Errorf("dataplane: %w", runtime.ErrBudget), classActor, none},
		"the system is going down":           {runtime.ErrShutdown, classProcess, none},
		"somebody knows better":              {fmt.Errorf("read: %w", resyncNeeded(downstream, refusal)), classResync, downstream},
		"somebody knows that it is the end":  {fatal(classProcess, io.EOF), classProcess, none},
		"what is known weighs more than why": {fatal(classActor, link.ErrDown), classActor, none},
	} {
		if k, reach := classify(tt.err); k != tt.class || reach != tt.reach {
			t.Errorf("%s: %s, %s; want %s, %s", name, k, reach, tt.class, tt.reach)
		}
	}
	var answer *link.RetvalError
	if err := resyncNeeded(downstream, refusal); !errors.As(err, &answer) || !errors.Is(fatal(classActor, io.EOF), io.EOF) || err.Error() != refusal.Error() {
		t.Error("a classified error hides its cause")
	}
}

// TestClassesAreAllNamed: every class has a word, and the table has no line that an earlier one hides.
func TestClassesAreAllNamed(t *testing.T) {
	words := map[string]bool{}
	for k := classNone; k <= classProcess; k++ {
		words[k.String()] = true
	}
	if len(words) != 7 {
		t.Errorf("words %v", words)
	}
	for _, line := range classes() {
		if k, reach := classify(line.is); k != line.class || reach != line.reach {
			t.Errorf("%v is %s in the table and classified as %s", line.is, line.class, k)
		}
	}
}
