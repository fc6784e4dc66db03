// Package durable writes small files so that they outlive a crash of the process or of the machine: a reader finds the old content or the new
// one, never a part, and what was reported as written is still there after a power failure.
//
// It owns nothing. A file has one writer at a time; who that is, is up to the caller. Nothing runs in the background.
package durable
