package simulator

import (
	"context"
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/core"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	quiet := statsclient.Log
	quiet.SetOutput(io.Discard)
	core.SetLogger(quiet)
	socketclient.SetLogger(quiet)
	core.ReplyChannelTimeout = 10 * time.Second
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for something that must happen.
const patience = 10 * time.Second

// listen returns a simulator that listens on a socket of the test.
func listen(t testing.TB, opts Options) *VPP {
	t.Helper()
	v := New(opts)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := v.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	return v
}

// connect returns a GoVPP connection to the simulator.
func connect(t testing.TB, v *VPP) *core.Connection {
	t.Helper()
	conn, err := core.Connect(socketclient.NewVppClient(v.Socket()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Disconnect)
	return conn
}

// timeout returns a context that ends when a test has waited long enough.
func timeout(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// invoke sends a request and waits for the reply, whatever its return code.
func invoke[R any, P interface {
	*R
	api.Message
}](t testing.TB, conn api.Connection, req api.Message,
) P {
	t.Helper()
	reply := P(new(R))
	if err := conn.Invoke(timeout(t), req, reply); err != nil {
		t.Fatalf("%s: %v", req.GetMessageName(), err)
	}
	return reply
}

// retval sends a request and returns the return code of its reply.
func retval[R any, P interface {
	*R
	api.Message
}](t testing.TB, conn api.Connection, req api.Message,
) int32 {
	t.Helper()
	code, _ := retvalOf(invoke[R, P](t, conn, req))
	return code
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// dump sends a dump request and returns its details.
func dump[D any, P interface {
	*D
	api.Message
}](t testing.TB, conn api.Connection, req api.Message,
) []P {
	t.Helper()
	stream, err := conn.NewStream(timeout(t), core.WithReplySize(4096))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	for _, msg := range []api.Message{req, &memclnt.ControlPing{}} {
		if err := stream.SendMsg(msg); err != nil {
			t.Fatalf("%s: %v", msg.GetMessageName(), err)
		}
	}
	var out []P
	for {
		msg, err := stream.RecvMsg()
		if err != nil {
			t.Fatalf("%s: %v", req.GetMessageName(), err)
		}
		switch m := msg.(type) {
		case P:
			out = append(out, m)
		case *memclnt.ControlPingReply:
			return out
		default:
			t.Fatalf("%s: unexpected %T", req.GetMessageName(), msg)
		}
	}
}

// retvalOf returns the return code of a reply, and whether it has one.
func retvalOf(msg api.Message) (int32, bool) {
	f := reflect.ValueOf(msg).Elem().FieldByName("Retval")
	if !f.IsValid() || f.Kind() != reflect.Int32 {
		return 0, false
	}
	return int32(f.Int()), true
}
