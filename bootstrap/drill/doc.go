// Package drill reads the file of a live drill: kind ChaosPlan, strictly. Every problem names the line and the field.
//
// It is called by the command `troupe chaos run`; what the values mean is said, and checked, by package live.
package drill
