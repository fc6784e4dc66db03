package bootstrap

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// waiter is an output that a test can wait for.
type waiter struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newWaiter() *waiter { return &waiter{more: make(chan struct{}, 1)} }

// Write satisfies io.Writer.
func (w *waiter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return n, err
}

// until waits until the output contains a text this often.
func (w *waiter) until(t *testing.T, text string, times int) {
	t.Helper()
	for {
		w.mu.Lock()
		have := w.text.String()
		w.mu.Unlock()
		if strings.Count(have, text) >= times {
			return
		}
		select {
		case <-w.more:
		case <-t.Context().Done():
			t.Fatalf("no %q in %s", text, have)
		}
	}
}

// started runs a command until the function that it returns is called, which returns its exit code.
func launched(t *testing.T, out, errs *waiter, args ...string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- execute(ctx, args, cli.Streams{Out: out, Errs: errs}) }()
	return func() int { cancel(); return <-code }
}

// TestWatch: --watch prints an answer once, again when it has changed, an error once, and ends with
// the interrupt as a success.
func TestWatch(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	out, errs := newWaiter(), newWaiter()
	stop := launched(t, out, errs, "get", "resync", "--watch=1ms", "--address", a.Address)
	out.until(t, "nat44", 1)
	if err := cli.NewControl(a.Socket).Post(t.Context(), "resync", api.ResyncRequest{}); err != nil {
		t.Fatal(err)
	}
	out.until(t, "nat44", 2)
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	errs.until(t, "connection refused", 1)
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs.text.String())
	}
	if got := strings.Count(out.text.String(), "---\n"); got != 1 || strings.Contains(out.text.String(), "\x1b") {
		t.Errorf("%s", out.text.String())
	}
	if r := lookAt(a, "get resync --watch"); r.code != exitFailed || !strings.Contains(r.errs, "connection refused") {
		t.Errorf("a watch of nothing: %+v", r)
	}
}

// TestEventsFollow: --follow goes on with new events.
func TestEventsFollow(t *testing.T) {
	backend := apitest.New(0)
	backend.Record(api.Event{Kind: "render", Text: "one"})
	a := apitest.Start(t, backend, nil)
	out, errs := newWaiter(), newWaiter()
	stop := launched(t, out, errs, "events", "--follow", "--kind", "render", "--address", a.Address)
	out.until(t, "one", 1)
	backend.Record(api.Event{Kind: "link", Text: "other"})
	backend.Record(api.Event{Kind: "render", Text: "two"})
	out.until(t, "two", 1)
	if code := stop(); code != exitOK || strings.Contains(out.text.String(), "other") {
		t.Errorf("exit code %d: %s%s", code, out.text.String(), errs.text.String())
	}
}

// TestResyncCommand: a resync ends when VPP has been read, and the journal has its reason.
func TestResyncCommand(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	if r := troupe("", "resync", "--reason", "drill", "--control-socket", a.Socket); r.code != exitOK || !strings.Contains(squeeze(r.out), "nat44 2 true ") {
		t.Errorf("%+v", r)
	}
	if r := lookAt(a, "events"); !strings.Contains(r.out, "drill") {
		t.Errorf("%+v", r)
	}
	if r := troupe("", "resync", "--method", "sideways", "--control-socket", a.Socket); r.code != exitFailed || !strings.Contains(r.errs, "sideways") {
		t.Errorf("%+v", r)
	}
}
