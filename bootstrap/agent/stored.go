package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// podFile stores the interfaces of VPP that commands have assigned to pods, in a file at this path.
// The file is replaced as a whole. The interfaces actor loads it when it starts, and saves it
// before it answers a command. It is safe for one goroutine at a time.
type podFile string

var _ interfaces.Store = podFile("")

// podDocument is the content of the file.
type podDocument struct {
	Version int        `json:"version"`
	Pods    []podEntry `json:"pods"`
}

// podEntry is the interface of one pod.
type podEntry struct {
	Pod       string `json:"pod"`
	Interface string `json:"interface"`
}

// podFileVersion is the version of the format; a file of another version is not read.
const podFileVersion = 1

// Load satisfies interfaces.Store. A file that cannot be read is renamed, for inspection, and the
// next save makes a new one.
func (f podFile) Load() (*messages.Attachments, error) {
	content, err := ownedFile(f).Load()
	if err != nil || content == nil {
		return &messages.Attachments{}, err
	}
	var stored podDocument
	if err = json.Unmarshal(content, &stored); err == nil && stored.Version != podFileVersion {
		err = fmt.Errorf("version %d is not %d", stored.Version, podFileVersion)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load interfaces of pods: %s: %w", f, err), os.Rename(string(f), string(f)+".unreadable"))
	}
	attachments := &messages.Attachments{}
	for _, p := range stored.Pods {
		attachments.Items = append(attachments.Items, &messages.Attachment{Pod: p.Pod, Interface: p.Interface})
	}
	return attachments, nil
}

func (f podFile) Save(attachments *messages.Attachments) error {
	stored := podDocument{Version: podFileVersion, Pods: []podEntry{}}
	for _, a := range attachments.GetItems() {
		stored.Pods = append(stored.Pods, podEntry{Pod: a.GetPod(), Interface: a.GetInterface()})
	}
	content, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	return ownedFile(f).Save(append(content, '\n'))
}

// ownedFile stores the record of the agent's own objects in VPP, in a file at this path.
type ownedFile string

var _ owned.Store = ownedFile("")

func (f ownedFile) Load() ([]byte, error) {
	// an unfinished file does no harm
	_ = durable.Clean(durable.Disk{}, filepath.Dir(string(f)), filepath.Base(string(f))+".")
	content, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load %s: %w", f, err)
	}
	return content, nil
}

func (f ownedFile) Save(document []byte) error {
	if err := durable.Replace(durable.Disk{}, string(f), document); err != nil {
		return fmt.Errorf("save %s: %w", f, err)
	}
	return nil
}

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
