// Package cnat is the cnat plugin of the simulated VPP: translations, source NAT, and the data path
// of its feature nodes, which an agent has on all interfaces of clients and backends. Packets
// through an interface without them are not translated; VPP would do so at the FIB entry of the
// VIP.
package cnat
