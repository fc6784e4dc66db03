package actors

import "errors"

// errContested is what a row shows whose address somebody else has; RenderAck.conflicts says who.
var errContested = errors.New("the address is in use by somebody else")

// errNotConnected answers questions about VPP while there is none.
var errNotConnected = errors.New("no connection to VPP, or its interfaces are not known yet")
