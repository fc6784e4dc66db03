package look

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// NewExternal returns `troupe external` with its commands.
func NewExternal(std cli.Streams) *cobra.Command {
	return cli.Group("external", "Show and change external configuration of NAT", newExternalList(std), newExternalApply(std), newExternalDelete(std))
}

// newExternalList returns `troupe external list`.
func newExternalList(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [SOURCE]", Short: "List the entries of all layers with their states", Args: cobra.MaximumNArgs(1),
		Long: "List the entries of all layers of external configuration with their owners and states; -o json and yaml also show\nthe layers with their documents.",
	}
	l := New(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resource := strings.Join(append([]string{"external"}, args...), "/")
		return l.Show(cmd, std, whole[api.External, api.ExternalEntry](resource, externalTable))
	}
	return cmd
}

// externalTable prints entries, and the layers that were refused.
func externalTable(c *cli.Columns, all *api.External) {
	entries := slices.Clip(all.Items)
	for _, layer := range all.Layers {
		if layer.Error != "" {
			entries = append(entries, api.ExternalEntry{Source: layer.Source, State: "not taken", Why: layer.Error})
		}
	}
	c.Table("", entries)
}

// newExternalApply returns `troupe external apply`. It returns after VPP has the configuration, so
// that a script can rely on exit code 0.
func newExternalApply(to cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply SOURCE -f FILE", Short: "Replace the layer of a source by a document", Args: cobra.ExactArgs(1),
		Long: `Replace the layer of a source by a document of kind ExternalConfiguration, in YAML or
JSON; "-f -" reads it from standard input. It returns when VPP holds all of it. If a single entry is
invalid or refused, nothing is changed and the error has the reason.`,
		Example: "  troupe external apply edge -f edge.yaml",
	}
	l := NewControl(cmd)
	file := cmd.Flags().StringP("filename", "f", "", "file with the document; - = standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *file == "" {
			return cli.Usagef("expected -f FILE")
		}
		content, err := to.Read(*file)
		if err == nil {
			content, err = yaml.YAMLToJSONStrict(content)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", *file, err)
		}
		var result api.ExternalResult
		if err := l.Client().Put(cmd.Context(), "external/"+args[0], content, &result); err != nil {
			return err
		}
		return l.Out.Print(to.Out, result, func(c *cli.Columns) { c.Row(result.Source + " applied") })
	}
	return cmd
}

// newExternalDelete returns `troupe external delete`. It is idempotent, as kubectl delete with
// --ignore-not-found.
func newExternalDelete(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete SOURCE", Short: "Remove the layer of a source", Args: cobra.ExactArgs(1),
		Long: "Remove the applied layer of a source. It returns when VPP has the configuration of the layers below. A source without a layer is not an error.",
	}
	l := NewControl(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var before api.External
		if err := l.Client().Get(cmd.Context(), "external/"+args[0], nil, &before); err != nil {
			return err
		}
		var result api.ExternalResult
		if err := l.Client().Delete(cmd.Context(), "external/"+args[0], &result); err != nil {
			return err
		}
		return l.Out.Print(std.Out, result, func(c *cli.Columns) {
			if len(before.Layers) == 0 {
				c.Row(result.Source + " has no layer: nothing was deleted")
				return
			}
			c.Row(result.Source + " deleted")
		})
	}
	return cmd
}
