package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/routes"
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

// Layout is what of VPP's set-up by others decides how services are served: names of interfaces.
type Layout struct {
	// Bridged are virtual interfaces of bridge domains whose members reach each other without
	// them.
	Bridged []string
	// Enter and Leave say where access lists of other owners are (acl.Others).
	Enter, Leave string
	// Unable is why VPP does not refuse clients of services without endpoints; "" = it refuses
	// them. Unable6 is a reason of IPv6 alone.
	Unable, Unable6 string
}

// AskLayout connects to VPP, reads its layout and disconnects again.
func AskLayout(ctx context.Context, socket string) (*Layout, error) {
	out := &Layout{}
	err := withVPP(ctx, socket, func(ctx context.Context, _ *messages.LinkState, c link.Caller) error {
		var reader interfaces.Reader
		set, err := reader.Discover(ctx, c, interfaces.Input{})
		if err != nil {
			return err
		}
		out.Bridged = reader.Bridged()
		unable, err := routes.Unable(ctx, c)
		if err != nil {
			return err
		}
		out.Unable, out.Unable6 = cmp.Or(unable, set.GetUnanswered()), set.GetUnanswered6()
		out.Enter, out.Leave, err = acl.Others(ctx, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("layout of VPP at %s: %w", socket, err)
	}
	return out, nil
}

// withVPP connects to VPP while a function runs. If VPP does not run, it returns an error at once.
// The connection outlives ctx until the function has returned, so that it can undo what it did.
func withVPP(ctx context.Context, socket string, use func(context.Context, *messages.LinkState, link.Caller) error) error {
	connection, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	unconnected := context.AfterFunc(ctx, cancel) // until the function runs
	defer unconnected()
	log := slog.New(slog.DiscardHandler)
	link.Quiet(log)
	l := link.New(link.Config{Socket: socket}, log)
	used := make(chan error, 1)
	reports, connected, reason := 0, false, ""
	err := l.Run(connection, func(state *messages.LinkState) {
		switch reports++; {
		case connected || reason != "" || reports == 1:
			// the first report comes before the first attempt
		case state.GetUp() && unconnected():
			connected = true
			go func() {
				used <- use(ctx, state, l)
				cancel()
			}()
		case !state.GetUp():
			reason = state.GetReason()
			cancel()
		}
	})
	if connected {
		err = errors.Join(err, <-used)
	} else if err == nil {
		err = errors.New(cmp.Or(reason, "interrupted"))
	}
	return errors.Join(err, l.Close())
}
