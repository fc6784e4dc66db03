package features

// The messages of VPP 26.06 that the agent uses. GoVPP's bindings are generated from VPP 25.10 and
// lack them; newer bindings replace this file.

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/codec"
)

func init() {
	for _, msg := range []api.Message{
		&CnatSnatAddressesDump{}, &CnatSnatAddressesDetails{}, &CnatSetSnatPolicy{}, &CnatSetSnatPolicyReply{},
		&FeatureCnatEnableDisable{}, &FeatureCnatEnableDisableReply{},
	} {
		api.RegisterMessage(msg, msg.GetMessageName()+"_"+msg.GetCrcString())
	}
}

// CnatSnatAddressesDump asks for the addresses of source NAT of every table; there is none before
// one is set.
type CnatSnatAddressesDump struct{}

// Reset satisfies api.Message.
func (*CnatSnatAddressesDump) Reset() {}

// GetMessageName satisfies api.Message.
func (*CnatSnatAddressesDump) GetMessageName() string { return "cnat_snat_addresses_dump" }

// GetCrcString satisfies api.Message.
func (*CnatSnatAddressesDump) GetCrcString() string { return "51077d14" }

// GetMessageType satisfies api.Message.
func (*CnatSnatAddressesDump) GetMessageType() api.MessageType { return api.RequestMessage }

// Size satisfies codec.Marshaler.
func (*CnatSnatAddressesDump) Size() int { return 0 }

// Marshal satisfies codec.Marshaler.
func (*CnatSnatAddressesDump) Marshal(b []byte) ([]byte, error) { return b, nil }

// Unmarshal satisfies codec.Unmarshaler.
func (*CnatSnatAddressesDump) Unmarshal([]byte) error { return nil }

// CnatSnatAddressesDetails are the SNAT addresses of one table; unspecified = none.
// CnatSetSnatAddresses sets the ones of the default table.
type CnatSnatAddressesDetails struct {
	Retval int32 `binapi:"i32,name=retval"`
	// IDs of the tables in which packets are translated (fwd), and those that come back (ret).
	FwdTableID4 uint32              `binapi:"u32,name=fwd_table_id4"`
	FwdTableID6 uint32              `binapi:"u32,name=fwd_table_id6"`
	RetTableID4 uint32              `binapi:"u32,name=ret_table_id4"`
	RetTableID6 uint32              `binapi:"u32,name=ret_table_id6"`
	SnatIP4     ip_types.IP4Address `binapi:"ip4_address,name=snat_ip4"`
	SnatIP6     ip_types.IP6Address `binapi:"ip6_address,name=snat_ip6"`
	SwIfIndex   uint32              `binapi:"interface_index,name=sw_if_index"`
}

// Reset satisfies api.Message.
func (m *CnatSnatAddressesDetails) Reset() { *m = CnatSnatAddressesDetails{} }

// GetMessageName satisfies api.Message.
func (*CnatSnatAddressesDetails) GetMessageName() string { return "cnat_snat_addresses_details" }

// GetCrcString satisfies api.Message.
func (*CnatSnatAddressesDetails) GetCrcString() string { return "09ae6b38" }

// GetMessageType satisfies api.Message.
func (*CnatSnatAddressesDetails) GetMessageType() api.MessageType { return api.ReplyMessage }

// Size satisfies codec.Marshaler.
func (*CnatSnatAddressesDetails) Size() int { return 6*4 + 4 + 16 }

// Marshal satisfies codec.Marshaler.
func (m *CnatSnatAddressesDetails) Marshal(b []byte) ([]byte, error) {
	if b == nil {
		b = make([]byte, m.Size())
	}
	buf := codec.NewBuffer(b)
	buf.EncodeInt32(m.Retval)
	for _, id := range []uint32{m.FwdTableID4, m.FwdTableID6, m.RetTableID4, m.RetTableID6} {
		buf.EncodeUint32(id)
	}
	buf.EncodeBytes(m.SnatIP4[:], 4)
	buf.EncodeBytes(m.SnatIP6[:], 16)
	buf.EncodeUint32(m.SwIfIndex)
	return buf.Bytes(), nil
}

// Unmarshal satisfies codec.Unmarshaler.
func (m *CnatSnatAddressesDetails) Unmarshal(b []byte) error {
	buf := codec.NewBuffer(b)
	m.Retval = buf.DecodeInt32()
	for _, id := range []*uint32{&m.FwdTableID4, &m.FwdTableID6, &m.RetTableID4, &m.RetTableID6} {
		*id = buf.DecodeUint32()
	}
	copy(m.SnatIP4[:], buf.DecodeBytes(4))
	copy(m.SnatIP6[:], buf.DecodeBytes(16))
	m.SwIfIndex = buf.DecodeUint32()
	return nil
}

// CnatSetSnatPolicy is the message of the bindings, for a VPP that knows more policies. VPP 26.06
// crashes on it while it has no SNAT address.
type CnatSetSnatPolicy struct{ cnat.CnatSetSnatPolicy }

// GetCrcString satisfies api.Message.
func (*CnatSetSnatPolicy) GetCrcString() string { return "37a3ce23" }

// CnatSetSnatPolicyReply is the reply of the bindings, which the link looks for beside the request.
type CnatSetSnatPolicyReply struct{ cnat.CnatSetSnatPolicyReply }

// FeatureCnatEnableDisable gives an interface all nodes of CNAT, of both families, or takes them
// away.
type FeatureCnatEnableDisable struct {
	SwIfIndex     uint32 `binapi:"interface_index,name=sw_if_index"`
	EnableDisable bool   `binapi:"bool,name=enable_disable"`
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
func (*FeatureCnatEnableDisable) Size() int { return 4 + 1 }

// Marshal satisfies codec.Marshaler.
func (m *FeatureCnatEnableDisable) Marshal(b []byte) ([]byte, error) {
	if b == nil {
		b = make([]byte, m.Size())
	}
	buf := codec.NewBuffer(b)
	buf.EncodeUint32(m.SwIfIndex)
	buf.EncodeBool(m.EnableDisable)
	return buf.Bytes(), nil
}

// Unmarshal satisfies codec.Unmarshaler.
func (m *FeatureCnatEnableDisable) Unmarshal(b []byte) error {
	buf := codec.NewBuffer(b)
	m.SwIfIndex, m.EnableDisable = buf.DecodeUint32(), buf.DecodeBool()
	return nil
}

// FeatureCnatEnableDisableReply has a return value alone, as the reply of the bindings from which
// it is made.
type FeatureCnatEnableDisableReply struct{ cnat.CnatSetSnatPolicyReply }

// GetMessageName satisfies api.Message.
func (*FeatureCnatEnableDisableReply) GetMessageName() string {
	return "feature_cnat_enable_disable_reply"
}
