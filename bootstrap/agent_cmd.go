package bootstrap

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const agentLong = `Agent keeps VPP equal to the services of the cluster until SIGINT or SIGTERM stops it. VPP continues to forward afterwards.

The file of --config is read first, and flags override it. 'troupe config defaults' prints and explains every setting.`

// newAgentCommand returns `troupe agent`. It validates the whole configuration before the agent
// starts, so that one run reports all errors.
func newAgentCommand(std streams) *cobra.Command {
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
			return configError(err)
		}
		log := newLog(std.errs, cfg.Log.Format, cfg.Log.Level)
		err = runAgent(cmd.Context(), cfg, log)
		if err != nil && cfg.Log.Format == "json" { // readers of the log parse each line as JSON
			log.Error("agent failed", "err", err)
			return &loggedError{err}
		}
		return err
	}
	return cmd
}

// configError makes errors of flags usage errors. Errors of files stay as they are.
func configError(err error) error {
	var all config.Errors
	if errors.As(err, &all) && !slices.ContainsFunc(all, func(e *config.FieldError) bool { return e.Line > 0 || isFile(e.Source) }) {
		return &usageError{err.Error()}
	}
	return err
}

// isFile reports whether the source of a problem is a file, not a flag or a default.
func isFile(source string) bool { return source != "" && !strings.HasPrefix(source, "--") }

// runAgent runs an agent until ctx ends or the root actor has given up.
func runAgent(ctx context.Context, cfg *config.Agent, log *slog.Logger) error {
	quiet(log)
	defer collectEarly()()
	followContainer(log)
	a, err := agent.Start(cfg, log)
	if err != nil {
		return err
	}
	log.Info("agent started", "node", cfg.NodeName, "version", readVersion().Version)
	err = a.Wait(ctx)
	log.Info("agent stopping", "node", cfg.NodeName)
	if closed := a.Close(); err == nil {
		err = closed
	}
	return err
}

// quiet redirects the logs of libraries to the log of the agent.
func quiet(log *slog.Logger) {
	link.Quiet(log)
	informers.BridgeKlog(log)
}

// validLevel reports whether newLog accepts the level.
func validLevel(level string) bool {
	var l slog.Level
	return l.UnmarshalText([]byte(level)) == nil
}

// newLog makes the log of the process; the level must be valid.
func newLog(to io.Writer, format, level string) *slog.Logger {
	least := slog.LevelInfo
	// validLevel or the validation of the configuration has checked it
	_ = least.UnmarshalText([]byte(level))
	options := &slog.HandlerOptions{Level: least}
	if format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
