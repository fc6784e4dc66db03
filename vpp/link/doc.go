// Package link is the connection to VPP: it reconnects without limit, sends binary API requests in
// order, and refuses messages that would crash VPP.
//
// # Use
//
// New makes a Link, and one goroutine of the actor "link" calls Run. The other packages of vpp/
// take a Caller, which Link implements, and call it from their own goroutines, because Do and Dump
// wait for VPP. Run reports every change of the connection as a messages.LinkState. A call belongs
// to the connection in which it began; when the connection ends, the call returns, and a new
// connection never gets a request or a reply of an old one.
//
// # Order
//
// A connection has one stream of requests. The requests of one Do are sent in their order;
// concurrent calls take turns in runs of 64. VPP executes and answers in order, so a Dump that
// begins after a Do has returned sees the effect of the Do, also where the caller stopped waiting
// for it. A restarted renderer therefore needs no other barrier than the stream, or the end of the
// connection.
//
// # What is known after a failure
//
// A request ends with its reply, or as "not sent", or as "unknown". Unknown means that VPP may have
// executed it: read back. The link never repeats a request by itself.
//
// When VPP does not answer the oldest request for Config.ReplyTimeout, the link ends the connection
// and all of its calls. This covers a VPP that hangs, a lost reply, and a request that VPP dropped
// because it does not know it (VPP sends no error then). A closed connection is detected at once.
//
// # A VPP that does not answer
//
// The main thread of VPP may be busy for minutes. VPP still accepts connections then, and keeps
// each one, also after the client has closed it, until the process of its API runs. With 16
// connections that are closed or have a request waiting, VPP 25.10 polls its sockets for ever
// (vlib_file_poll): the process of the API never runs, and without workers no packet is forwarded.
// So the link opens one connection and waits on it, however long, and the state says since when. A
// connection that falls silent after its handshake ends, because its callers wait, and the next one
// waits. After Config.ReplaceAfter, doubled each time, one more connection takes the place of the
// one that waits. There are at most three (attempt.go). Closed connections count until VPP proves
// that it has noticed: it answers, closes or refuses a connection, or the socket file is another
// one. They are counted in the Link, over all of its runs, so all clients of a process share one
// Link; a run that ends leaves the connection that waits to the next one, and Close closes it.
//
// # What VPP may send
//
// A VPP that sends garbage costs the connection and nothing else. The link allocates no memory
// because of a number that VPP sent before it has compared that number with what there is:
//   - a frame has 2 bytes to 16 MiB (maxFrame), the size of the segment in which VPP allocates
//     messages;
//   - the elements that a message counts are within its frame: each message is measured before it
//     is decoded (layout), because the generated code allocates as many elements as a message says
//     that it has;
//   - a dump has at most Config.MaxDumpDetails details of Config.MaxDumpBytes and is complete
//     within Config.DumpTimeout, over all pages.
//
// A message that exceeds a limit ends the connection with an error that names it. LinkState.Reason
// carries the error, and the link connects again after the pause of a failure.
//
// # Shutdown
//
// Run returns when its context is done: calls are released first, then the transport is closed,
// with Config.CloseTimeout for all. A transport that does not close in that time is abandoned and
// ends with VPP. Call Close after the last Run.
//
// # Boot identity
//
// LinkState.Boot changes with every start of VPP and stays when the same VPP is connected again. It
// consists of the process id that VPP reports and of the identity of its socket file, which VPP
// creates at its start. The binary API has nothing better: show_vpe_system_time is the time of day,
// and the time of the start (/sys/boottime) is in the stats segment only. Another file
// over the socket of a running VPP makes it look restarted, which costs one full comparison. An
// equal Boot is no reason to skip a read: after every new connection, read back.
//
// # Why not GoVPP's core.AsyncConnect
//
// The package uses GoVPP's bindings and codec, and not its core.Connection, because that (v0.13.0)
//   - drops replies and details when a consumer is 100 ms behind a full channel of 100: a dump
//     without some of its rows makes a wrong resync, a lost control_ping_reply a dump without end.
//     Here the callback only decodes and delivers, and never waits;
//   - waits without limit by default (DefaultReplyTimeout is 0), and requests in flight get no
//     answer at all when the connection breaks;
//   - stops reconnecting after 3 attempts by default;
//   - finds the message of a number by a search through every binding package, and rewrites these
//     tables on reconnect without the lock that its reader takes. Here a connection has tables of
//     its own, filled when a message is first used, and a transport of its own;
//   - keeps event subscriptions by number over a reconnect, although the numbers may have changed,
//     and does not subscribe again;
//   - matches the replies of a stream to its requests by position alone, so that one late reply
//     shifts all that follow.
//
// Its socket client allocates whatever length a frame header has, does not report the end of the
// stream (the reader goroutine just ends), panics when Disconnect is called twice or after a failed
// Connect, and blocks in Disconnect while VPP does not read; so the package has its own (socket).
// The decoder reads past the end of a short frame into an older one, so the capacity of a frame is
// cut off.
//
// # Refused messages
//
// Check refuses messages that are well-formed and still crash VPP 25.10 or corrupt its state.
package link
