//go:build unix

package link

import (
	"io/fs"
	"syscall"
)

// inode returns the inode number of a file, 0 where the file system has none.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
