// Package chaos has the commands that inject faults into a running agent, and those of drills. The
// agent owns the faults: they end by themselves, or with `troupe chaos stop`, also when the command
// is gone.
package chaos
