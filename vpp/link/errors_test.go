package link

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
)

func TestClassifiedErrors(t *testing.T) {
	classes := []error{ErrStale, ErrDisabled, ErrUnsafe}
	for _, class := range classes {
		own := Classified("row exists", class)
		err := fmt.Errorf("add row 10.96.0.1:80: %w", own)
		if err.Error() != "add row 10.96.0.1:80: row exists" {
			t.Errorf("text of %v: %q", class, err)
		}
		if !errors.Is(err, own) {
			t.Errorf("%v does not wrap its own error", err)
		}
		for _, other := range classes {
			if errors.Is(err, other) != (other == class) {
				t.Errorf("an error of class %q is of class %q: %t", class, other, errors.Is(err, other))
			}
		}
	}
	if errors.Is(Classified("row exists", ErrStale), Classified("row exists", ErrStale)) {
		t.Error("two errors with the same text are one")
	}
}

// TestGuardIsUnsafe: a message that Check refuses is not retried.
func TestGuardIsUnsafe(t *testing.T) {
	err := Check(&nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: true})
	if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrUnsafe) {
		t.Errorf("guard refuses with %v", err)
	}
}

// TestErrorsOfTheLinkHaveNoClass: a lost connection does not concern objects of VPP.
func TestErrorsOfTheLinkHaveNoClass(t *testing.T) {
	for _, err := range []error{ErrDown, ErrUnknown, ErrNotSent, ErrUnsupported, ErrTooLarge, ErrProtocol, ErrTimeout, &RetvalError{Message: "m", Retval: -1}} {
		for _, class := range []error{ErrStale, ErrDisabled, ErrUnsafe} {
			if errors.Is(err, class) {
				t.Errorf("%v is of class %v", err, class)
			}
		}
	}
}

// TestLost: errors after which Run reports the next connection.
func TestLost(t *testing.T) {
	for err, want := range map[error]bool{ErrDown: true, ErrNotSent: true, ErrUnknown: true, ErrUnsupported: false, io.EOF: false} {
		if got := Lost(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
	if Lost(nil) {
		t.Error("no error says that the connection has ended")
	}
}
