package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

func TestClassOf(t *testing.T) {
	refusal := &link.RetvalError{Message: "nat44_add_del_lb_static_mapping", Retval: -1}
	for name, tt := range map[string]struct {
		err     error
		class   class
		refused bool
	}{
		"no error":                         {nil, classNone, false},
		"VPP refuses":                      {refusal, classRetry, true},
		"VPP refuses, with a meaning":      {fmt.Errorf("add row: %w: %w", batch.ErrRejected, refusal), classRetry, true},
		"any other error":                  {io.ErrUnexpectedEOF, classRetry, true},
		"the row exists":                   {fmt.Errorf("add row: %w: %w", nat44.ErrExists, refusal), classResync, false},
		"the row is gone":                  {nat44.ErrVanished, classResync, false},
		"the plugin is disabled":           {nat44.ErrDisabled, classResync, false},
		"no answer":                        {fmt.Errorf("add row: %w", link.ErrUnknown), classResync, false},
		"no answer, connection lost":       {errors.Join(link.ErrDown, link.ErrUnknown), classResync, false},
		"not sent":                         {fmt.Errorf("%w: %w", link.ErrNotSent, link.ErrDown), classWait, false},
		"no connection":                    {link.ErrDown, classWait, false},
		"refused by the guard of the link": {fmt.Errorf("add: %w: %w", link.ErrUnsafe, link.ErrRefused), classAbort, true},
		"VPP does not know the message":    {link.ErrUnsupported, classAbort, true},
		"an unsafe operation":              {link.ErrUnsafe, classAbort, true},
		"routes are not supported":         {fmt.Errorf("%w: %w", routes.ErrUnsupported, link.ErrUnsupported), classAbort, true},
		"deadline":                         {context.DeadlineExceeded, classAbort, true},
		"cancelled":                        {context.Canceled, classAbort, true},
	} {
		if k := classOf(tt.err); k != tt.class || Refused(tt.err) != tt.refused {
			t.Errorf("%s: %d, refused %t; want %d, %t", name, k, Refused(tt.err), tt.class, tt.refused)
		}
	}
}
