// Package greedy has a benchmark only: a tenant asks for very many frontends while an endpoint of
// another tenant changes. The agent is a process of its own, so that its memory is measured alone,
// and VPP a real one:
//
//	TROUPE_VPP_BIN=/path/to/vpp TROUPE_VPP_PLUGINS=/path/to/vpp_plugins go test ./bootstrap/greedy -run '^$' -bench . -benchtime 1x
package greedy
