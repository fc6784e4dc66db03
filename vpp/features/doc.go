// Package features says what a VPP can do for the agent, by the names in its message table. The
// agent works with VPP 24.06 to 26.06 (docs/vpp-versions.md); most messages are the same in all of
// them.
//
// A feature is something that the agent does with VPP, with all the requests that it takes. Check
// is pure: the link calls it with the table of every new connection (messages.LinkState), and the
// actor of the link puts missing features into readiness.
package features
