package api

import (
	"encoding/json"
	"time"
)

// External is external configuration.
type External struct {
	// Complete is true once every watched source has delivered its documents.
	Complete bool `json:"complete"`
	// Layers by source.
	Layers []ExternalLayer `json:"layers"`
	// Page has the entries of all layers, ordered by name; of the same name the owner is first.
	Page[ExternalEntry]
}

// ExternalLayer is the configuration of one source.
type ExternalLayer struct {
	// Source is the name of the layer: "file", "etcd:NAME", "etcd:NODE/NAME", or the name given
	// at the control socket.
	Source string `json:"source"`
	// Priority decides between layers that have the same entry; the larger one wins.
	Priority int `json:"priority"`
	// Entries is the number of its entries.
	Entries int `json:"entries"`
	// Document is the source text in JSON.
	Document json.RawMessage `json:"document,omitempty"`
	// Since is the time of its latest change.
	Since time.Time `json:"since,omitzero"`
	// Error is the reason why the present document is refused; "" = it is accepted.
	Error string `json:"error"`
}

// ExternalEntry is one entry of a layer with its state.
type ExternalEntry struct {
	// Name is the key of a mapping, "address IP", or "interface NAME".
	Name string `json:"name" column:"NAME"`
	// Kind is static, identity, address or interface.
	Kind string `json:"kind" column:"KIND"`
	// Source is the layer.
	Source string `json:"source" column:"SOURCE"`
	// State is in-sync, pending, failed, refused (another owner has it) or shadowed (a layer
	// above has an entry of the same name).
	State string `json:"state" column:"STATE"`
	// Owner is the present owner if it is not this layer: another layer, a service, or a
	// configuration in VPP.
	Owner string `json:"owner" column:"OWNER"`
	// Why is the reason for a state other than in-sync.
	Why string `json:"why" column:"WHY"`
}

// ExternalResult answers a change of external configuration.
type ExternalResult struct {
	// Source is the layer.
	Source string `json:"source"`
	// Cause is the ID under which the journal has the command and its effects.
	Cause uint64 `json:"cause"`
}
