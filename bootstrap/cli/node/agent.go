package node

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const agentLong = `Agent keeps VPP equal to the services of the cluster until SIGINT or SIGTERM
stops it. VPP continues to forward afterwards.

The file of --config is read first, and flags override it. 'troupe config defaults' prints and
explains every setting.`

// NewAgent returns `troupe agent`. It validates the whole configuration before the agent
// starts, so that one run reports all errors.
func NewAgent(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent --node-name NODE",
		Short: "Run the node agent",
		Long:  agentLong,
		Args:  cobra.NoArgs,
	}
	flags := config.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.LoadForStart()
		if err != nil {
			return cli.ConfigError(err)
		}
		log := NewLog(std.Errs, cfg.Log.Format, cfg.Log.Level)
		err = runAgent(cmd.Context(), cfg, log)
		if err != nil && cfg.Log.Format == "json" { // readers of the log parse each line as JSON
			log.Error("agent failed", "err", err)
			return cli.Logged(err)
		}
		return err
	}
	return cmd
}

// runAgent runs an agent until ctx ends, or until only a new process helps.
func runAgent(ctx context.Context, cfg *config.Agent, log *slog.Logger) error {
	Quiet(log)
	defer collectEarly(collecting)()
	followContainer(log)
	a, err := agent.Start(cfg, log)
	if err != nil {
		return err
	}
	log.Info("agent started", "node", cfg.NodeName, "version", api.ReadBuild().Version)
	err = a.Wait(ctx)
	log.Info("agent stopping", "node", cfg.NodeName)
	if closed := a.Close(); err == nil {
		err = closed
	}
	return err
}

// Quiet redirects the logs of libraries to the log of the agent.
func Quiet(log *slog.Logger) {
	link.Quiet(log)
	informers.BridgeKlog(log)
}

// ValidLevel reports whether NewLog accepts the level.
func ValidLevel(level string) bool {
	var l slog.Level
	return l.UnmarshalText([]byte(level)) == nil
}

// NewLog makes the log of the process; the level must be valid.
func NewLog(to io.Writer, format, level string) *slog.Logger {
	least := slog.LevelInfo
	// ValidLevel or the validation of the configuration has checked it
	_ = least.UnmarshalText([]byte(level))
	options := &slog.HandlerOptions{Level: least}
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
