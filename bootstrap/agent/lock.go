package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errLocked means that another process has a lock.
var errLocked = errors.New("locked by another process")

// lock is a lock on a file. The kernel releases it when the process ends.
type lock struct{ file *os.File }

// lockOf is the path of the lock beside VPP's socket.
func lockOf(socket string) string { return socket + ".troupe" }

// takeLock creates a file, locks it and writes the owner into it. errLocked names the present
// owner.
func takeLock(path, owner string) (*lock, error) {
	const tries = 10
	for range tries {
		l, err := tryLock(path, owner)
		// the lock of a replaced file keeps no other agent out
		if err != nil || l.at(path) {
			return l, err
		}
		_ = l.release()
	}
	return nil, fmt.Errorf("lock %s: the file is replaced again and again", path)
}

// tryLock locks the file that is at a path at this moment. A file in a directory that cannot be
// written is locked if it is there.
func tryLock(path, owner string) (*lock, error) {
	const flags = syscall.O_CLOEXEC | syscall.O_NOFOLLOW
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flags, 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		if readable, failed := os.OpenFile(path, os.O_RDONLY|flags, 0); failed == nil {
			f, err = readable, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner := make([]byte, 200)
		n, _ := f.Read(owner)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w (%s)", path, errLocked, strings.TrimSpace(string(owner[:n])))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	host, _ := os.Hostname()
	if err := f.Truncate(0); err == nil { // the owner is information only
		_, _ = fmt.Fprintf(f, "%s, process %d of host %s\n", owner, os.Getpid(), host)
	}
	return &lock{f}, nil
}

// at reports whether the locked file is still the one at a path.
func (l *lock) at(path string) bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// release unlocks the file; nil = there is no lock.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// dataLock is the name of the lock in the data directory.
const dataLock = "agent.lock"

// agentOf is the owner of a lock.
func agentOf(node string) string { return "agent of node " + node }

// lockDataDir locks the data directory, if there is one, because two agents would overwrite each
// other's state. It also registers the release of VPP's lock: as the first step of Start it is
// released last, after the clean-up of VPP.
func (a *Agent) lockDataDir() error {
	a.onClose("lock of VPP", func(context.Context) error { return a.vppLock.Load().release() })
	dir := a.cfg.DataDir
	if dir == "" {
		return nil
	}
	var l *lock
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		l, err = takeLock(filepath.Join(dir, dataLock), agentOf(a.cfg.NodeName))
	}
	switch {
	case errors.Is(err, errLocked):
		return fmt.Errorf("dataDir: another agent has %s: %w", dir, err)
	case err != nil:
		a.log.Warn("cannot lock the data directory, a second agent would not be noticed", "err", err)
		return nil
	}
	a.dataLock.Store(l)
	a.onClose("lock of the data directory", func(context.Context) error { return a.dataLock.Load().release() })
	return nil
}
