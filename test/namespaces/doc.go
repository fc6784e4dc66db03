// Package namespaces tests services with the TCP and UDP of Linux: pods and a client outside are
// network namespaces, connected to a real VPP, and an agent from this working tree programs it. It
// needs root, a VPP with the plugin af_packet that TROUPE_VPP_BIN names, and vppctl beside it;
// otherwise it says what is missing.
//
// TestLayouts plays the same checks on VPPs that are set up as others do it; docs/cni.md has the
// table of them. One layout: go -C test test ./namespaces -v -run TestLayouts/vxlan$; its argument
// -renderer chooses the renderer of the agent.
package namespaces
