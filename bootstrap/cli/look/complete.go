package look

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// Limits of a completion, which must not make a shell wait.
const (
	completeTimeout = 2 * time.Second
	mostCompletions = 1000
)

// CompleteServices completes the name of a service from the services that the agent knows.
func CompleteServices(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, args, typed, "services", func(s *api.Service) string { return s.Key })
}

// completeActors completes the path of an actor.
func completeActors(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, args, typed, "actors", func(a *api.Actor) string { return a.Path })
}

// complete asks the same agent as the command. Without an answer there are no names.
func complete[T any](cmd *cobra.Command, args []string, typed, resource string, name func(*T) string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l := &Query{}
	_, l.socketOfUser = agentOfUser("", "")
	for flag, value := range map[string]*string{
		"address": &l.address, "control-socket": &l.Socket, "node": &l.Node, "agent-namespace": &l.namespace, "kubeconfig": &l.Kubeconfig,
	} {
		*value, _ = cmd.Flags().GetString(flag) // all completed commands have these flags
	}
	parent := cmd.Context()
	if parent == nil { // cobra has no context during completion
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completeTimeout)
	defer cancel()
	c, err := l.Client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _, err := cli.All[T](ctx, c, resource, nil, 0)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range all {
		// a shell may run what it completes, and an agent may name its objects as it likes
		if text := name(&all[i]); strings.HasPrefix(text, typed) && isPath(text) && len(names) < mostCompletions {
			names = append(names, text)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// isPath reports whether a text has the characters of names, keys and paths only.
func isPath(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/~", r))
	})
}
