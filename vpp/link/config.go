package link

import (
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// Config holds the address of VPP, the limits and the timeouts. The zero value of every field means
// its default. New copies it, and nothing changes the copy: the fields are grouped by purpose.
type Config struct {
	// Socket is the path of VPP's binary API socket (socksvr in startup.conf). Default
	// /run/vpp/api.sock.
	Socket string
	// transport makes the transport of one connection attempt; tests have others than a socket.
	transport func() transport
	// Stamp identifies the VPP that listens at present, from outside of the connection; it is a
	// part of the boot identity. Default: identity of the socket file, which VPP makes anew
	// with every start.
	Stamp func() (string, error)

	// How much may be in flight, and how large an answer may be.

	// Window is the largest number of requests in flight. VPP carries out all requests that it
	// has got without a pause, so more of them hold its main thread for longer. More are no
	// faster either. The deletion of a balanced row counts as one request for each of its
	// entries, because VPP walks through all of its NAT sessions for each. Default 16.
	Window int
	// WindowBytes is the largest number of bytes in flight; a larger message is sent alone. It
	// keeps the requests that VPP has not yet taken smaller than the buffer of the socket, so
	// that a write never blocks on a hung VPP. Default 32768.
	WindowBytes int
	// MaxDumpDetails is the largest number of details that one dump may have, and of pages
	// where it is paged. Default 1048576, more than the routes of the Internet.
	MaxDumpDetails int
	// MaxDumpBytes is the largest size of all details of one dump on the wire. Default 256 MiB:
	// 1,000,000 routes have 201 MB, 100,000 mappings with 100 backends 119 MB.
	MaxDumpBytes int

	// How long the link waits.

	// ConnectTimeout is the time after which a connection without an answer is reported. The
	// link goes on waiting for it. Default 3 s.
	ConnectTimeout time.Duration
	// ReplaceAfter is how long the link waits for the first answer on a connection before it
	// replaces the connection by another; it doubles with each one. After three there is no
	// other until VPP has answered or restarted. Default 2 min.
	ReplaceAfter time.Duration
	// ReplyTimeout is the time after which an unanswered request ends the connection. VPP does
	// not answer for seconds while it scans large session tables. Default 5 s.
	ReplyTimeout time.Duration
	// DumpTimeout is the time after which a dump whose details still come ends the connection,
	// however fast they come; it is at least ReplyTimeout. VPP writes 1,000,000 details in
	// about 10 s. Default 30 s.
	DumpTimeout time.Duration
	// ProbeInterval is the silence after which a control_ping is sent; every frame from VPP
	// shows that it is alive. Default 500 ms.
	ProbeInterval time.Duration
	// PollInterval is the interval of checks for a missing socket file. Default 100 ms.
	PollInterval time.Duration
	// BackoffMin and BackoffMax bound the pause after a failed attempt, which doubles each
	// time; every pause is shortened by a random part of up to a half. Defaults 50 ms and 2 s.
	BackoffMin, BackoffMax time.Duration
	// CloseTimeout bounds how long the end of a connection waits for the transport to close.
	// Default 500 ms.
	CloseTimeout time.Duration

	// OnEvent is called, in the goroutine of Run, after VPP reported that an interface came,
	// went or changed its state. It is a hint to read the interfaces again: several events may
	// be merged into one call, and a new connection means one as well. It must not block.
	// Default: no subscription.
	OnEvent func()
	// OnElection is the same for an event of VRRP: a virtual router has changed its state.
	OnElection func()
}

// withDefaults returns the configuration with every zero field replaced.
func (c Config) withDefaults() Config {
	def(&c.Socket, adapter.DefaultBinapiSocket)
	def(&c.Window, 16)
	def(&c.WindowBytes, 32<<10)
	def(&c.MaxDumpDetails, 1<<20)
	def(&c.MaxDumpBytes, 256<<20)
	def(&c.ConnectTimeout, 3*time.Second)
	def(&c.ReplaceAfter, 2*time.Minute)
	def(&c.ReplyTimeout, 5*time.Second)
	def(&c.DumpTimeout, 30*time.Second)
	c.DumpTimeout = max(c.DumpTimeout, c.ReplyTimeout)
	def(&c.ProbeInterval, 500*time.Millisecond)
	def(&c.PollInterval, 100*time.Millisecond)
	def(&c.BackoffMin, 50*time.Millisecond)
	def(&c.BackoffMax, 2*time.Second)
	def(&c.CloseTimeout, 500*time.Millisecond)
	return c
}

// room is how much of WindowBytes a request takes, so that no more than Window are in flight.
func (c *Config) room(req api.Message, size int) int {
	requests := 1
	if m, ok := req.(*nat44_ed.Nat44AddDelLbStaticMapping); ok && !m.IsAdd {
		requests = len(m.Locals)
	}
	return max(size+headerBytes, requests*c.WindowBytes/c.Window)
}

// def sets a field that is still zero.
func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
