package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Group returns a command that has subcommands only.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: KnownCommand, RunE: needsSubcommand}
	cmd.AddCommand(commands...)
	return cmd
}

// KnownCommand refuses the arguments of a group: cobra passes only names that are not commands. The
// error suggests similar commands.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return Usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// needsSubcommand is the usage error of a group without a subcommand.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return Usagef("expected a command: %s (see '%s --help')", strings.Join(names, ", "), cmd.CommandPath())
}
