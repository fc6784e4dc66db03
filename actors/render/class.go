package render

import (
	"context"
	"errors"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// class is what an error of a request to VPP asks for. One table decides it for all renderers. The
// package that sent the request gives VPP's answer its meaning: it wraps a sentinel of vpp/link.
type class uint8

const (
	// classNone: there is no error.
	classNone class = iota
	// classWait: nothing was sent, because VPP is not connected. The link reports the next
	// connection; until then there is nothing to do.
	classWait
	// classRetry: VPP refused one object. It is tried again after a delay; other objects are
	// not concerned.
	classRetry
	// classAbort: the same request would end the same way. It is tried again when something
	// else is wanted, and at the longest delay.
	classAbort
	// classResync: VPP does not hold what the renderer believes. VPP has to be read.
	classResync
)

// classOf returns the class of an error. The first sentinel that matches decides, because a missing
// answer weighs more than an earlier answer. An error without a sentinel is a refusal of one
// object.
func classOf(err error) class {
	if err == nil {
		return classNone
	}
	for _, line := range [...]struct {
		is    error
		class class
	}{
		{link.ErrUnknown, classResync},
		{link.ErrNotSent, classWait},
		{link.ErrDown, classWait},
		{link.ErrRefused, classAbort},
		{link.ErrUnsupported, classAbort},
		{link.ErrDisabled, classResync},
		{link.ErrStale, classResync},
		{link.ErrUnsafe, classAbort},
		{context.DeadlineExceeded, classAbort},
		{context.Canceled, classAbort},
	} {
		if errors.Is(err, line.is) {
			return line.class
		}
	}
	return classRetry
}

// Refused reports whether a request was refused, by VPP or before it was sent, so that its outcome
// is known.
func Refused(err error) bool {
	k := classOf(err)
	return k == classRetry || k == classAbort
}
