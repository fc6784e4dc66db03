package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/features"
)

// identity identifies the VPP of a connection.
type identity struct {
	// boot changes with every start of VPP.
	boot string
	// version as show_version gives it, "" where VPP has no such message.
	version string
	// features are what VPP can do.
	features []*messages.VPPFeature
}

// open connects and reads the identity of VPP, which takes as long as VPP takes to
// answer. When ctx is done it closes the transport. before is the stamp of VPP.
func (l *Link) open(ctx context.Context, conn *connection, before string) (identity, error) {
	if err := connect(ctx, conn); err != nil {
		return identity{}, err
	}
	id, err := conn.handshake(ctx)
	if err == nil {
		id.boot, err = l.boot(id.boot, before)
	}
	if err != nil {
		conn.close(err)
	}
	return id, err
}

// connect opens the transport.
func connect(ctx context.Context, conn *connection) error {
	stop := context.AfterFunc(ctx, conn.api.abort)
	defer stop()
	err := conn.api.Connect()
	if err == nil && ctx.Err() != nil {
		_ = conn.api.Disconnect()
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// handshake makes the connection usable and reads the process id and the version of VPP, which also
// proves that it answers. The field boot of the result holds the process id only.
func (conn *connection) handshake(ctx context.Context) (identity, error) {
	if err := conn.prepare(); err != nil {
		return identity{}, err
	}
	conn.senders.Go(conn.sendLoop)
	results, err := conn.Do(ctx, []api.Message{&memclnt.ControlPing{}, &vpe.ShowVersion{}})
	if err != nil {
		return identity{}, fmt.Errorf("handshake: %w", err)
	}
	ping, ok := results[0].Reply.(*memclnt.ControlPingReply)
	if results[0].Err != nil || !ok {
		return identity{}, fmt.Errorf("handshake: %w", results[0].Err)
	}
	id := identity{boot: fmt.Sprintf("pid%d", ping.VpePID), features: features.Check(conn.table)}
	if results[1].Err != nil && !errors.Is(results[1].Err, ErrUnsupported) {
		return identity{}, fmt.Errorf("handshake: %w", results[1].Err)
	}
	if version, ok := results[1].Reply.(*vpe.ShowVersionReply); ok {
		id.version = version.Version
	}
	pid := uint32(os.Getpid()) //nolint:gosec // positive
	if conn.cfg.OnEvent != nil {
		conn.subscribe(ctx, "interface events", &interfaces.SwInterfaceEvent{}, &interfaces.WantInterfaceEvents{EnableDisable: 1, PID: pid}, conn.event)
	}
	if conn.cfg.OnElection != nil {
		conn.subscribe(ctx, "events of VRRP", &vrrp.VrrpVrEvent{}, &vrrp.WantVrrpVrEvents{EnableDisable: true, PID: pid}, conn.election)
	}
	return id, nil
}

// subscribe subscribes to events, which signal to. They are only hints, so the connection works
// without them if VPP refuses.
func (conn *connection) subscribe(ctx context.Context, what string, event, request api.Message, to chan struct{}) {
	id, err := conn.lookup(event)
	if err != nil {
		conn.log.Warn("cannot subscribe to "+what+", polling only", "err", err)
		return
	}
	in := newIncoming(event, id)
	in.event = to
	conn.mu.Lock()
	conn.incoming[id] = in
	conn.mu.Unlock()
	results, err := conn.Do(ctx, []api.Message{request})
	if err == nil {
		err = results[0].Err
	}
	// VPP returns INVALID_REGISTRATION when this client has subscribed already.
	if err != nil && !errors.Is(err, api.INVALID_REGISTRATION) {
		conn.log.Warn("cannot subscribe to "+what+", polling only", "err", err)
	}
}

// boot combines the identity that VPP reports with the stamp of its socket. A stamp that changed
// while connecting means that VPP restarted in between, so that the connection may be with either
// process.
func (l *Link) boot(says, before string) (string, error) {
	after, err := l.cfg.Stamp()
	if err != nil {
		return "", err
	}
	if before != after {
		return "", fmt.Errorf("VPP was started while connecting (%s, then %s)", before, after)
	}
	if after == "" {
		return says, nil
	}
	return says + "@" + after, nil
}

// Started returns when the VPP of a boot identity was started: the time at which it bound its
// socket. Zero = the identity has no stamp of a socket file.
func Started(boot string) time.Time {
	_, stamp, _ := strings.Cut(boot, "@")
	text, _, _ := strings.Cut(stamp, "-")
	ns, err := strconv.ParseInt(text, 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// socketStamp identifies a socket file. VPP removes the file and binds a new one with every start,
// so inode and time of the last change of its content, which for a socket is the time of the bind,
// distinguish two starts, also where VPP always has process id 1. Changing mode or owner of the
// file does not matter.
func socketStamp(path string) func() (string, error) {
	return func() (string, error) {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSocket {
			return "", fmt.Errorf("%s is not a socket", path)
		}
		return fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), inode(info)), nil
	}
}
