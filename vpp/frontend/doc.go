// Package frontend names frontends: address, port and protocol under which a service is reached. It
// is shared by the renderers' planners and has no state.
package frontend
