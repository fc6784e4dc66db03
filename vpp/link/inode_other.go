//go:build !unix

package link

import "io/fs"

// inode returns 0: the platform has no inode numbers.
func inode(fs.FileInfo) uint64 { return 0 }
