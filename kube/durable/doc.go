// Package durable replaces small files as a whole. Whenever the process or the machine dies, a
// reader finds the old content or the new one; content that was reported as written survives a
// power failure. The new content is written under another name and synced, then renamed, and the
// directory is synced.
//
// Each call writes under a name of its own, so that two agents of one node may share a directory
// during an update. A file that a crash leaves under such a name stays until Clean.
//
// The functions may be called from any goroutine. They reach the disk through FS, so that tests can
// let each operation fail and a simulation needs no disk (Memory).
package durable
