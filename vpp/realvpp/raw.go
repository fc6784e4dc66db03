package realvpp

import (
	"encoding/binary"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/codec"
)

// Raw is a connection without checks and window, for messages that the agent never sends.
type Raw struct {
	client  *socketclient.Client
	replies chan []byte
}

// Event waits for an event of the given type and decodes it into the message; other frames are
// skipped.
func (r *Raw) Event(t testing.TB, event api.Message) {
	t.Helper()
	id, err := r.client.GetMsgID(event.GetMessageName(), event.GetCrcString())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(10 * time.Second); ; {
		select {
		case data := <-r.replies:
			if binary.BigEndian.Uint16(data) != id {
				continue
			}
			if err := codec.DefaultCodec.DecodeMsg(data, event); err != nil {
				t.Fatal(err)
			}
			return
		case <-deadline:
			t.Fatalf("no %s came", event.GetMessageName())
		}
	}
}

// NewRaw connects; the connection ends with the test.
func NewRaw(t testing.TB, socket string) *Raw {
	t.Helper()
	r := &Raw{client: socketclient.NewVppClient(socket), replies: make(chan []byte, 100)}
	r.client.SetMsgCallback(func(_ uint16, data []byte) { r.replies <- append([]byte(nil), data...) })
	if err := r.client.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.client.Disconnect() })
	return r
}

// Send writes a message and does not wait for the answer.
func (r *Raw) Send(t testing.TB, msg api.Message) {
	t.Helper()
	id, err := r.client.GetMsgID(msg.GetMessageName(), msg.GetCrcString())
	if err != nil {
		t.Fatal(err)
	}
	data, err := codec.DefaultCodec.EncodeMsg(msg, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.client.SendMsg(1, data); err != nil {
		t.Fatal(err)
	}
}

// Retval writes a message and returns the return value of the answer: every reply begins with id,
// context and retval.
func (r *Raw) Retval(t testing.TB, msg api.Message) int32 {
	t.Helper()
	return int32(binary.BigEndian.Uint32(r.reply(t, msg)[6:]))
}

// Ask writes a message and decodes the answer.
func (r *Raw) Ask(t testing.TB, msg, answer api.Message) {
	t.Helper()
	if err := codec.DefaultCodec.DecodeMsg(r.reply(t, msg), answer); err != nil {
		t.Fatalf("answer to %s: %v", msg.GetMessageName(), err)
	}
}

// reply writes a message and returns the frame of the answer.
func (r *Raw) reply(t testing.TB, msg api.Message) []byte {
	t.Helper()
	r.Send(t, msg)
	select {
	case data := <-r.replies:
		return data
	case <-time.After(10 * time.Second):
		t.Fatalf("%s was not answered", msg.GetMessageName())
		return nil
	}
}
