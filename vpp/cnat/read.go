package cnat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"

	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Read reads what VPP holds, which of the interfaces have the nodes, and which of the addresses can
// be served; Kubernetes has allocated none of these addresses. An error wraps what the link
// reports; errors.Is(err, link.ErrUnsupported) means that the plugin is not loaded. The requests
// are separate: a change that another client of VPP makes between them may be seen in part.
func Read(ctx context.Context, c link.Caller, ip4 bool, indexes []uint32, addresses []netip.Addr) (*State, error) {
	s := NewState()
	add := func(d *cnat.CnatTranslationDetails) {
		h := readRow(&d.Translation)
		s.Rows[h.Key] = h
	}
	if err := link.Each(ctx, c, &cnat.CnatTranslationDump{}, add); err != nil {
		return nil, fmt.Errorf("read translations of CNAT: %w", err)
	}
	if err := s.readSNAT(ctx, c); err != nil {
		return nil, fmt.Errorf("read SNAT addresses of CNAT: %w", err)
	}
	if err := s.readExcluded(ctx, c); err != nil {
		return nil, fmt.Errorf("read the source NAT policy of CNAT: %w", err)
	}
	if !s.Newer {
		found, err := below(ctx, c, addresses)
		if err != nil {
			return nil, fmt.Errorf("read what leads to the addresses of CNAT: %w", err)
		}
		s.Below = found
	}
	missing, err := missingNodes(ctx, c, nodesOf(ip4, s.Newer), indexes)
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		if len(missing[index]) == 0 {
			s.Attached[index] = nil
		}
	}
	return s, nil
}

// readSNAT reads the addresses of source NAT. A VPP that has the dump has the CNAT of 26.06.
func (s *State) readSNAT(ctx context.Context, c link.Caller) error {
	err := link.Each(ctx, c, &features.CnatSnatAddressesDump{}, func(d *features.CnatSnatAddressesDetails) {
		if d.FwdTableID4 == 0 && d.FwdTableID6 == 0 {
			s.SNAT = SNAT{netip.AddrFrom4(d.SnatIP4), netip.AddrFrom16(d.SnatIP6)}
		}
	})
	if s.Newer = err == nil; !errors.Is(err, link.ErrUnsupported) {
		return err
	}
	reply, err := link.Ask[*cnat.CnatGetSnatAddressesReply](ctx, c, &cnat.CnatGetSnatAddresses{})
	if err != nil {
		return err
	}
	if s.SNAT = (SNAT{netip.AddrFrom4(reply.SnatIP4), netip.AddrFrom16(reply.SnatIP6)}); s.SNAT == NoSNAT() {
		return nil
	}
	own := []netip.Prefix{netip.PrefixFrom(s.SNAT[0], 32), netip.PrefixFrom(s.SNAT[1], 128)}
	winners, err := forwarding.Covering(ctx, c, own)
	for i := range winners {
		s.Local[i] = winners[i].Err == nil && winners[i].Prefix == own[i] && winners[i].Local
	}
	return err
}

// readExcluded reads the networks that are excluded from source NAT, and whether the tables of the
// policy are in use. VPP 26.06 answers with an error while it has no address, and then it has
// neither.
func (s *State) readExcluded(ctx context.Context, c link.Caller) error {
	text, err := link.Command(ctx, c, "show cnat snat-policy")
	if _, answered := link.Retval(err); !answered {
		return err
	}
	s.Excluded, s.Tables = excludedIn(text), tablesIn(text)
	return nil
}

// Interfaces returns the indexes of all interfaces of VPP.
func Interfaces(ctx context.Context, c link.Caller) (indexes []uint32, err error) {
	err = link.Each(ctx, c, &interfaces.SwInterfaceDump{SwIfIndex: noInterface}, func(d *interfaces.SwInterfaceDetails) {
		indexes = append(indexes, uint32(d.SwIfIndex))
	})
	if err != nil {
		return nil, fmt.Errorf("read interfaces: %w", err)
	}
	return indexes, nil
}

// missingNodes asks which nodes interfaces do not have. An interface that VPP does not have lacks
// all of them.
func missingNodes(ctx context.Context, c link.Caller, nodes []node, indexes []uint32) (map[uint32][]node, error) {
	msgs := make([]api.Message, 0, 2*len(nodes)*len(indexes))
	for _, index := range indexes {
		for _, n := range nodes {
			msgs = append(msgs, n.queries(index)...)
		}
	}
	missing := map[uint32][]node{}
	if len(msgs) == 0 {
		return missing, nil
	}
	answers, err := c.Do(ctx, msgs)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of CNAT: %w", err)
	}
	for i := 0; i < len(answers); i += 2 {
		index, n := indexes[i/2/len(nodes)], nodes[i/2%len(nodes)]
		has, err := yes(answers[i])
		all, failed := yes(answers[i+1])
		if err = errors.Join(err, failed); err != nil {
			return nil, fmt.Errorf("read the nodes of CNAT on interface %d: %w", index, err)
		}
		if !has || all {
			missing[index] = append(missing[index], n)
		}
	}
	return missing, nil
}

// yes is the answer to a query; no where VPP does not have the interface.
func yes(answer link.Result) (bool, error) {
	if _, answered := link.Retval(answer.Err); answer.Err != nil && !answered {
		return false, answer.Err
	}
	reply, ok := answer.Reply.(*feature.FeatureIsEnabledReply)
	return answer.Err == nil && ok && reply.IsEnabled, nil
}
