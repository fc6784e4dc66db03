package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Unfinished ends the name of a file while it is written.
const Unfinished = ".tmp"

// Replace gives a file new content, and makes its directory if it is missing. After an error the
// file has the old content, or the new content if only the sync of the directory failed.
func Replace(files FS, path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	f, err := files.Create(dir, filepath.Base(path)+".", Unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = files.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, files.Remove(f.Name()))
	}
	return files.SyncDir(dir)
}

// Remove removes a file for good. A missing file is no error.
func Remove(files FS, path string) error {
	err := files.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}

// Clean removes the unfinished files that interrupted calls of Replace left in a directory, if
// their names begin with the prefix.
func Clean(files FS, dir, prefix string) error {
	names, err := files.Find(dir, prefix, Unfinished)
	for _, name := range names {
		err = errors.Join(err, files.Remove(name))
	}
	return err
}
