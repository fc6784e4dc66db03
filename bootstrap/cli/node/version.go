package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Version is the output of `troupe version`.
type Version struct {
	api.Build
	// VPP has the features of the VPP at the socket, with --vpp.
	VPP *VPPVersion `json:"vpp,omitempty"`
}

// VPPVersion is a VPP and its features.
type VPPVersion struct {
	// Version as VPP itself gives it.
	Version string `json:"version"`
	// Features in the order of presentation.
	Features []VPPFeature `json:"features"`
	// IPv4 is the renderer that IPv4 needs there.
	IPv4 interfaces.Choice `json:"-"`
	// Others is what other clients of VPP have set up of CNAT's source NAT.
	Others cnat.Others `json:"-"`
}

// VPPFeature is a function of the agent that needs messages of VPP.
type VPPFeature struct {
	Name string `json:"name"`
	// Renderer that needs it; "" = every agent does.
	Renderer string `json:"renderer,omitempty"`
	// Available is true if VPP has all messages for it.
	Available bool `json:"available"`
	// Without is the function that the agent lacks if the feature is not available.
	Without string `json:"without,omitempty"`
	// Missing are the messages that VPP does not have.
	Missing []VPPMissing `json:"missing,omitempty"`
	// Summary is Missing in one line.
	Summary string
}

// VPPMissing is a message that VPP does not have.
type VPPMissing struct {
	// Message is its name with its CRC.
	Message string `json:"message"`
	Why     string `json:"why"`
}

const versionLong = `Version prints the version of this program. With --vpp it also connects to VPP
and prints the features that the agent has with this VPP, and the missing messages of the other
features. It changes nothing in VPP.`

// NewVersion returns `troupe version`.
func NewVersion(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of this program, and the features of VPP", Long: versionLong, Args: cobra.NoArgs}
	out := cli.AddFormat(cmd)
	vpp := cmd.Flags().Bool("vpp", false, "connect to VPP and print its features")
	socket := cmd.Flags().String("vpp-api-socket", config.Defaults().VPP.APISocket, "path of VPP's API socket")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := Version{Build: api.ReadBuild()}
		if *vpp {
			var err error
			if v.VPP, err = AskVPP(cmd.Context(), *socket); err != nil {
				return err
			}
		}
		return out.Print(std.Out, v, func(c *cli.Columns) {
			c.Row("troupe", v.Version, v.Revision, v.Go, v.Platform)
			if v.VPP != nil {
				vppTable(c, v.VPP)
			}
		})
	}
	return cmd
}

// vppTable prints the features of VPP.
func vppTable(c *cli.Columns, v *VPPVersion) {
	c.Section("VPP " + v.Version)
	c.Row("FEATURE", "RENDERER", "AVAILABLE", "MISSING")
	for _, f := range v.Features {
		available, missing := "yes", ""
		if !f.Available {
			available, missing = "no", f.Without+": "+f.Summary
		}
		c.Row(f.Name, f.Renderer, available, missing)
	}
}

// AskVPP connects to VPP and disconnects again. If VPP does not run, it returns an error at once.
func AskVPP(ctx context.Context, socket string) (*VPPVersion, error) {
	var connected *messages.LinkState
	v := &VPPVersion{Others: cnat.Others{Whose: cnat.NoSNAT()}}
	err := withVPP(ctx, socket, func(ctx context.Context, state *messages.LinkState, vpp link.Caller) (err error) {
		connected = state
		if v.IPv4, err = interfaces.Choose(ctx, vpp); err != nil {
			return err
		}
		held, err := cnat.Read(ctx, vpp, false, nil, nil)
		if errors.Is(err, link.ErrUnsupported) { // there is no CNAT
			return nil
		}
		if err == nil {
			v.Others = held.Others(&cnat.Want{SNAT: cnat.NoSNAT(), Own: cnat.NoSNAT()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("VPP at %s: %w", socket, err)
	}
	v.Version = connected.GetVersion()
	for _, f := range connected.GetFeatures() {
		found := VPPFeature{Name: f.GetName(), Renderer: f.GetRenderer(), Available: len(f.GetMissing()) == 0, Summary: features.Summary(f.GetMissing())}
		for _, m := range f.GetMissing() {
			found.Without = f.GetWithout()
			found.Missing = append(found.Missing, VPPMissing{m.GetMessage(), m.GetWhy()})
		}
		v.Features = append(v.Features, found)
	}
	return v, nil
}
