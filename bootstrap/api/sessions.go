package api

import "time"

// Sessions is the table of NAT sessions in VPP.
type Sessions struct {
	// Time is when the agent last read it.
	Time time.Time `json:"time"`
	// BusiestWorker is the number of sessions of the worker with the most sessions. Limit is
	// the limit of each worker; 0 = unknown.
	BusiestWorker uint64 `json:"busiestWorker"`
	Limit         uint32 `json:"limit"`
	// Alarm is true while the table is nearly full and the agent can neither free sessions nor
	// raise the limit.
	Alarm bool `json:"alarm"`
	// Protocols are the sessions by protocol, as of the last survey; empty = there was none
	// yet.
	Protocols []ProtocolSessions `json:"protocols"`
}

// ProtocolSessions are the sessions of one protocol.
type ProtocolSessions struct {
	// Protocol is tcp, udp, icmp or other.
	Protocol string `json:"protocol" column:"PROTOCOL"`
	// Sessions occupy a place in the table. Expired counts the sessions among them after their
	// timeout.
	Sessions uint64 `json:"sessions" column:"SESSIONS"`
	Expired  uint64 `json:"expired" column:"EXPIRED"`
}

// ServiceSessions are live NAT sessions of a service.
type ServiceSessions struct {
	// Time is when VPP was asked.
	Time time.Time `json:"time"`
	// Items are at most 1000, the most recently active first.
	Items []Session `json:"items"`
	// Incomplete is the reason why there may be more; "" = these are all.
	Incomplete string `json:"incomplete,omitempty"`
}

// Session is one NAT session.
type Session struct {
	// Protocol is TCP, UDP or the number of another one.
	Protocol string `json:"protocol" column:"PROTOCOL"`
	// Client, Frontend and Backend are "ip:port". ClientAs is the address of the client as the
	// backend sees it, if it is replaced.
	Client   string `json:"client" column:"CLIENT"`
	Frontend string `json:"frontend" column:"FRONTEND"`
	Backend  string `json:"backend" column:"BACKEND"`
	ClientAs string `json:"clientAs,omitempty" column:"CLIENT AS,wide"`
	// IdleSeconds is the time since the last packet.
	IdleSeconds float64 `json:"idleSeconds" column:"IDLE"`
	Packets     uint64  `json:"packets" column:"PACKETS,wide"`
	Bytes       uint64  `json:"bytes" column:"BYTES,wide"`
	// Expired is true for a session that only keeps its place in the table.
	Expired bool `json:"expired" column:"EXPIRED"`
}
