// Package chaos has the commands for faults and drills on a running agent. Only the root command in
// bootstrap uses it.
//
// The agent owns the faults: they end by themselves or with `troupe chaos stop`, even if the
// command has ended.
package chaos
