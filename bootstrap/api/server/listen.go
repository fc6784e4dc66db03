package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// socketMode gives access to the control socket to the user of the agent only.
const socketMode = 0o600

// listenUnix listens on a unix socket that only its owner can open at any time. It creates the
// socket in a private directory, sets the mode, and moves it to its path. It replaces the socket
// file of a dead agent; a socket with a listener is an error.
func listenUnix(path string) (net.Listener, error) {
	if err := free(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// mode 0700; a short name, because a socket path has at most 107 bytes
	private, err := os.MkdirTemp(dir, ".c")
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

// free returns an error if a path is in use, nil if a new socket can have it.
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

// inUse adds to the error of an address in use the setting of the address, and the usual reason.
func inUse(err error, setting string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%w (%s): does a second agent run on this node?", err, setting)
}
