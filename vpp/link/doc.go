// Package link is the connection to VPP: it reconnects for ever, sends binary API requests in order, and refuses messages that would crash VPP.
//
// # Use
//
// New makes a Link, and one goroutine of the actor "link" calls Run. The other packages of vpp/ take a Caller, which Link implements, and call it from
// their own goroutines, because Do and Dump wait for VPP. Run reports every change of the connection
// as a messages.LinkState. A call belongs to the session it began with; when the session ends, the call returns, and a new session never
// sees a request or a reply of an old one.
//
// # Order
//
// A session has one stream of requests. The requests of one Do are sent in their order, those of concurrent calls take turns in runs of
// 64. VPP executes and answers in order, so a Dump that begins after a Do has returned sees what the Do did, also where the caller
// stopped waiting for it: the stream itself, or the end of the session, is the barrier that a restarted renderer needs.
//
// # What is known after a failure
//
// A request ends with its reply, or as "not sent", or as "unknown". Unknown means that VPP may have executed it: read back. The link
// never repeats a request by itself.
//
// When VPP leaves the oldest request without an answer for Config.ReplyTimeout, the session is given up with everything in it. This
// covers a VPP that hangs, a reply that got lost, and a request that VPP dropped because it does not know it (VPP says nothing then). A
// closed connection is found by the next write, which is a probe at the latest, Config.ProbeInterval after the last frame.
//
// # Shutdown
//
// Run returns when its context is done: calls are released first, then the transport is closed, with Config.CloseTimeout for all. A
// transport that does not close in that time is left behind and ends when VPP does.
//
// # Boot identity
//
// LinkState.Boot changes with every start of VPP and stays when the same VPP is connected again. It is made of the process id that VPP
// reports and of the identity of its socket file, which VPP makes anew when it starts. The binary API itself has nothing better:
// show_vpe_system_time is the time of day, and the time of the start (/sys/boottime) is in the stats segment only. Weaknesses: behind a
// transport without a socket file (Config.Adapter) only the process id is left, which is always 1 for a VPP that is alone in its
// container, unless Config.Stamp is given; and moving another file over the socket of a running VPP makes it look
// restarted, which costs one full comparison. Nothing may be skipped because Boot is the same: after every new session, read
// back.
//
// # Why not GoVPP's core.AsyncConnect
//
// The package uses GoVPP's bindings, codec and socket client (adapter.VppAPI), and not its core.Connection, because that one (v0.13.0)
//   - drops replies and details when a consumer is 100 ms behind a full channel of 100: a dump without some of its rows is a wrong
//     resync, a lost control_ping_reply a dump without end. Here the callback only decodes and hands over, and never waits;
//   - waits for ever by default (DefaultReplyTimeout is 0), and requests in flight get no answer at all when the connection breaks;
//   - does not detect the end of the stream: the reader goroutine just ends. So here silence is probed, also while requests wait;
//   - gives up reconnecting after 3 attempts by default, and for good;
//   - finds the message of a number by a search through every binding package, and rewrites these tables on reconnect without the lock
//     that its reader takes. Here a session has tables of its own, filled when a message is first used, and a transport of its own;
//   - keeps event subscriptions by number over a reconnect, when the numbers have changed, and does not subscribe again;
//   - matches the replies of a stream to its requests by position alone, so that one late reply shifts all that follow.
//
// The socket client has defects of its own: Disconnect panics when called twice or after a failed Connect (contained), a write has
// no deadline (so the bytes in flight are bounded below the size of the socket's buffer, Config.WindowBytes), the decoder reads
// past the end of a short frame into an older one (cut off), and the generated code trusts a frame's own count of elements,
// which only matters with a peer that is not VPP.
//
// # Guard
//
// Check refuses messages that are well-formed and still crash VPP 25.10 or corrupt its state.
package link
