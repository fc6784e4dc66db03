package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// socketMode lets only the owner of the agent talk to the control socket.
const socketMode = 0o600

// listenUnix listens on a unix socket that nobody but the owner can ever open: it is made in a private directory and moved to its place
// when its mode is set. A socket file that a dead agent left behind is replaced; one that somebody answers on is an error.
func listenUnix(path string) (net.Listener, error) {
	if err := free(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(dir, ".c") // mode 0700; a short name, because paths of sockets end at 107 bytes
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	temporary := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temporary, socketMode), os.Rename(temporary, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &controlListener{UnixListener: l, path: path}, nil
}

// free reports why a path cannot be used for a new socket.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("%s is in use by another agent: %w", path, syscall.EADDRINUSE)
	}
	return nil
}

// controlListener removes its socket file when it is closed, once.
type controlListener struct {
	*net.UnixListener
	path string
}

// Addr returns the path that clients use.
func (l *controlListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the file.
func (l *controlListener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		_ = os.Remove(l.path)
	}
	return err
}
