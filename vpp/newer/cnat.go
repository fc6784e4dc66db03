// Package newer declares messages of VPP 26.06 that GoVPP's bindings, which are those of VPP 25.10, do not have. Bindings that have them replace it.
package newer

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/codec"
)

func init() {
	for _, msg := range []api.Message{
		&FeatureCnatEnableDisable{}, &FeatureCnatEnableDisableReply{}, &CnatSetSnatPolicy{}, &CnatSetSnatPolicyReply{},
	} {
		api.RegisterMessage(msg, msg.GetMessageName()+"_"+msg.GetCrcString())
	}
}

// FeatureCnatEnableDisable gives an interface all nodes of CNAT, or takes them: those for input and output of 25.10, and those that 26.06 has beside them.
// VPP counts: what was enabled twice has to be disabled twice.
type FeatureCnatEnableDisable struct {
	SwIfIndex     interface_types.InterfaceIndex `binapi:"interface_index,name=sw_if_index"`
	EnableDisable bool                           `binapi:"bool,name=enable_disable"`
}

// Reset satisfies api.Message.
func (m *FeatureCnatEnableDisable) Reset() { *m = FeatureCnatEnableDisable{} }

// GetMessageName satisfies api.Message.
func (*FeatureCnatEnableDisable) GetMessageName() string { return "feature_cnat_enable_disable" }

// GetCrcString satisfies api.Message.
func (*FeatureCnatEnableDisable) GetCrcString() string { return "5501adee" }

// GetMessageType satisfies api.Message.
func (*FeatureCnatEnableDisable) GetMessageType() api.MessageType { return api.RequestMessage }

// Size satisfies codec.Marshaler.
func (*FeatureCnatEnableDisable) Size() int { return 5 }

// Marshal satisfies codec.Marshaler.
func (m *FeatureCnatEnableDisable) Marshal(b []byte) ([]byte, error) {
	if b == nil {
		b = make([]byte, m.Size())
	}
	buf := codec.NewBuffer(b)
	buf.EncodeUint32(uint32(m.SwIfIndex))
	buf.EncodeBool(m.EnableDisable)
	return buf.Bytes(), nil
}

// Unmarshal satisfies codec.Unmarshaler.
func (m *FeatureCnatEnableDisable) Unmarshal(b []byte) error {
	buf := codec.NewBuffer(b)
	m.SwIfIndex, m.EnableDisable = interface_types.InterfaceIndex(buf.DecodeUint32()), buf.DecodeBool()
	return nil
}

// FeatureCnatEnableDisableReply is the reply to FeatureCnatEnableDisable.
type FeatureCnatEnableDisableReply struct{ cnat.CnatSetSnatPolicyReply }

// GetMessageName satisfies api.Message.
func (*FeatureCnatEnableDisableReply) GetMessageName() string {
	return "feature_cnat_enable_disable_reply"
}

// CnatSetSnatPolicy is that of the bindings, for a VPP that knows one more policy. VPP 26.06 crashes on it while it has no SNAT address.
type CnatSetSnatPolicy struct{ cnat.CnatSetSnatPolicy }

// GetCrcString satisfies api.Message.
func (*CnatSetSnatPolicy) GetCrcString() string { return "37a3ce23" }

// CnatSetSnatPolicyReply is that of the bindings, which the link looks for beside the request.
type CnatSetSnatPolicyReply struct{ cnat.CnatSetSnatPolicyReply }
