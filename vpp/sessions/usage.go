package sessions

// Usage is the number of sessions in relation to the limit of the table.
type Usage struct {
	// Enabled says whether the plugin is enabled. If not, everything else is zero.
	Enabled bool
	// Busiest is the number of sessions of the worker that has the most, Total the number of
	// all workers. The limit applies to each worker. Where VPP does not report each worker,
	// both are the same.
	Busiest, Total uint64
	// Base is the limit that the plugin was enabled with. A limit that was set later is only in
	// the Survey.
	Base uint32
	// Costly says that this read has cost VPP a pass over its sessions, so that the next one
	// should not follow soon.
	Costly bool
}

// Protocol is the protocol of sessions.
type Protocol uint8

// The protocols, in the order of their names in metrics.
const (
	TCP Protocol = iota
	UDP
	ICMP
	Other
	// Protocols is the number of protocols.
	Protocols
)

// String returns the name in metrics.
func (p Protocol) String() string {
	names := [...]string{TCP: "tcp", UDP: "udp", ICMP: "icmp", Other: "other"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}

// Count is a number of sessions, and how many of them have expired.
type Count struct {
	// Sessions that occupy a place.
	Sessions uint64
	// Expired are the sessions among them whose timeout has passed.
	Expired uint64
}

// Survey is the content of the table in numbers, at the cost of a pass over it.
type Survey struct {
	// Known says whether a survey was made. If not, everything else is zero.
	Known bool
	// Limit is the present limit of a worker; LimitKnown is false while the plugin is disabled.
	Limit      uint32
	LimitKnown bool
	// All are all sessions of all workers.
	All Count
	// By are the sessions by protocol.
	By [Protocols]Count
}
