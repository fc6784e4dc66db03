// Package greedy has tests and a benchmark only: tenants ask for very many frontends, change them
// all the time, or use up memory, while endpoints of other tenants change. VPP is a real one; the
// agent is a process of its own, so that its memory is measured alone.
//
//	export TROUPE_VPP_BIN=/path/to/vpp TROUPE_VPP_PLUGINS=/path/to/vpp_plugins
//	go test ./bootstrap/greedy -run 'TestTenants$' -for 30m -seed 7
//	go test ./bootstrap/greedy -run '^$' -bench . -benchtime 1x
package greedy
