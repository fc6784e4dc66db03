package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
)

// usageError is an error about the command line. Its text describes the expected form.
type usageError struct{ error }

// Usagef makes a usage error.
func Usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// loggedError is an error that is already in the log, so it is not printed again.
type loggedError struct{ error }

// Logged marks an error that is already in the log, so that it is not printed again.
func Logged(err error) error { return &loggedError{err} }

// IsLogged reports whether an error is already in the log.
func IsLogged(err error) bool {
	_, is := errors.AsType[*loggedError](err)
	return is
}

// IsUsage reports whether the exit code of an error is 2.
func IsUsage(err error) bool {
	_, is := errors.AsType[*usageError](err)
	return is
}

// ObjectErrors are errors of input objects, one line each: "file: Kind namespace/name: field:
// message".
type ObjectErrors []*messages.ObjectError

// Error has a line for each.
func (e ObjectErrors) Error() string {
	lines := make([]string, len(e))
	for i, problem := range api.Problems(e) {
		lines[i] = strings.ReplaceAll(problem.String(), "\n", " ")
	}
	return strings.Join(lines, "\n")
}

// ConfigError makes an error of flags a usage error. It returns an error of a file unchanged.
func ConfigError(err error) error {
	var all config.Errors
	if errors.As(err, &all) && !slices.ContainsFunc(all, func(e *config.FieldError) bool { return e.Line > 0 || isFile(e.Source) }) {
		return Usagef("%s", err)
	}
	return err
}

// isFile reports whether the source of a problem is a file, not a flag or a default.
func isFile(source string) bool { return source != "" && !strings.HasPrefix(source, "--") }

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
