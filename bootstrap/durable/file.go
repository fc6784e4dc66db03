package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// unfinished is appended to the name of a file for the time that it is written. The name is always the same, so that what a crash left
// behind is written over the next time.
const unfinished = ".tmp"

// Replace gives a file new content, at once, and makes its directory if there is none. Only the user of the process may read either. Errors are
// those of the file system; the old content is still there then, unless it is only the directory that could not be synced.
func Replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next := path + unfinished
	if err := write(next, content); err != nil {
		return errors.Join(err, absent(os.Remove(next)))
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return syncDir(dir)
}

// Remove takes a file away for good. That there is none is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		return absent(err)
	}
	return syncDir(filepath.Dir(path))
}

func write(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes what was done to the names in a directory outlive the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// absent is no error where a file should be gone.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
