// Package service holds the semantics of Kubernetes Services as pure functions: what must THIS node
// do with the packets of one Service?
//
// Resolve takes the normalised Service with its EndpointSlices, the context of the node and the
// configuration. It returns the ServiceView: one row per (address, port, protocol, client class)
// with its action: forward, reject or drop. The baseline is kube-proxy of Kubernetes 1.36 in
// nftables mode. The package knows no dataplane: the renderers translate the view.
//
//	ServiceInput --+
//	NodeContext  --+--> Resolve --> ServiceView --> renderers (rows), health-check server,
//	Config       --+                                metrics, probes
//
// The way of one service through Resolve:
//
//	resolve.go     which services are served at all; one independent pass per IP family
//	endpoints.go   slices -> merged endpoints of one service port (join by name and protocol, one
//	               entry per ip:port)
//	selection.go   endpoints -> Cluster set, Local set, "is there anything usable anywhere"
//	frontends.go   sets -> rows; nodeports.go fills in the details
//	health.go      health-check node ports
//
// The users of a view call other pure functions. Table evaluates packets against views.
// HealthAnswer is the HTTP answer of a health-check port. Hash tells different views apart.
// text.go has the words that the command line shows.
//
// Everything here is a function of its arguments: no clock, no I/O, no logger, no goroutine, no
// package state. All functions may be called from any goroutine at any time. Arguments are never
// modified. A view shares strings and problems with its input, and its rows share backends with
// each other: like every message it is immutable.
package service
