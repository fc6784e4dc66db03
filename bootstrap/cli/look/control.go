package look

import (
	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/client"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// Control is the part of a command that changes something in an agent.
type Control struct {
	socket string
	// Out is the format of the output.
	Out *cli.Format
}

// NewControl adds the common flags of state-changing commands.
func NewControl(cmd *cobra.Command) *Control {
	c := &Control{Out: cli.AddFormat(cmd)}
	_, socket := agentOfUser("", config.Defaults().API.ControlSocket)
	cmd.Flags().StringVar(&c.socket, "control-socket", socket, "path of the agent's control socket; default: $"+agentVariable+", if it is a path")
	return c
}

// Client returns a client of the control socket.
func (c *Control) Client() *client.Client { return client.NewControl(c.socket) }
