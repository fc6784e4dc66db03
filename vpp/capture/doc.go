// Package capture follows real packets through VPP by its trace: which nodes of its graph a packet
// visits, in plain words.
//
//	Parse   the text of "show trace" -> packets
//	Run     adds a trace to the nodes where packets enter, until enough packets of a frontend were
//	        seen or ctx ends, and clears the trace, unless another user has packets in it
//
// VPP traces the next packets of a node, whatever they are: it has no filter that leaves no tables
// behind. So the number of traced packets is bounded, and the filter works on the text.
package capture
