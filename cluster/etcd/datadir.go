//go:build !agent

package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

const (
	dataDirName  = "data"
	lockFileName = "lock"
)

// dirLock locks a data directory for this process; the kernel releases it at the end of the
// process.
type dirLock struct{ file *os.File }

// lockDir creates the directory if it is missing and locks it, without waiting.
func lockDir(dir string) (*dirLock, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no data directory given", ErrConfig)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := tryLock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &dirLock{file: file}, nil
}

func (l *dirLock) release() error { return l.file.Close() }

// tryLock takes an exclusive flock(2), like bbolt on its file, so that it fails while any etcd has
// the database open.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

// checkData checks the data of an earlier process before etcd reads them. etcd itself waits without
// limit for a database that another etcd has open. If it cannot read the database, it panics in a
// goroutine of its own, in which we cannot recover.
func checkData(data string, log *zap.Logger) (err error) {
	member := filepath.Join(data, "member")
	entries, err := os.ReadDir(member)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if err := probeDatabase(filepath.Join(member, "snap", "db")); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	if err := readData(data, log); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// readData reads the database and the log like etcd, and panics in the same cases. It is etcd's own
// verification without two of its rules, which are true only after an orderly stop. etcd syncs the
// entries of its log but not the commit index, so the database may be ahead of that index after a
// kill. etcd accepts this; a stricter check would keep a killed agent from starting.
func readData(data string, log *zap.Logger) error {
	db := backend.NewDefaultBackend(log, datadir.ToBackendFileName(data))
	defer db.Close() //nolint:errcheck // opened for reading
	wals := datadir.ToWALDir(data)
	snapshots, err := wal.ValidSnapshotEntries(log, wals)
	if err != nil {
		return err
	}
	if len(snapshots) == 0 {
		return errors.New("the log has no beginning")
	}
	snapshot := snapshots[len(snapshots)-1]
	if _, err := wal.Verify(log, wals, snapshot); err != nil {
		return err
	}
	if index, _ := schema.ReadConsistentIndex(db.ReadTx()); index < snapshot.GetIndex() {
		return fmt.Errorf("the database is at entry %d, before the snapshot of the log at %d", index, snapshot.GetIndex())
	}
	return nil
}

// probeDatabase reports ErrLocked if another process has the database open.
func probeDatabase(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	return errors.Join(tryLock(file), file.Close())
}
