package bootstrap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// newConfigCommand returns `troupe config`. Its commands need no agent.
func newConfigCommand(std cli.Streams) *cobra.Command {
	return cli.Group("config", "Print, check and explain the configuration of the agent",
		newConfigDefaultsCommand(std), newConfigValidateCommand(std), newConfigExplainCommand(std))
}

// newConfigDefaultsCommand returns `troupe config defaults`. Its output is a valid file that users
// can edit.
func newConfigDefaultsCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "defaults", Short: "Print a complete configuration file with every default, explained", Args: cobra.NoArgs}
	out := cli.AddFormat(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *out == "json" {
			return out.Print(std.Out, config.Defaults(), nil)
		}
		_, err := fmt.Fprint(std.Out, config.Marshal(config.Defaults(), true))
		return err
	}
	return cmd
}

// newConfigValidateCommand returns `troupe config validate`. It does not require a node name,
// because several nodes share a file.
func newConfigValidateCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE|-...",
		Short: "Validate configuration files and report all problems",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var problems error
			for _, name := range files {
				data, err := std.Read(name)
				if err == nil {
					_, err = config.Load(data, name)
				}
				if err != nil {
					problems = errors.Join(problems, err)
					continue
				}
				fmt.Fprintf(std.Out, "%s: ok\n", name)
			}
			return problems
		},
	}
}

// newConfigExplainCommand returns `troupe config explain`, which works like kubectl explain.
func newConfigExplainCommand(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain [FIELD]", Short: "Explain a field of the configuration and everything below it, for example vpp.apiSocket", Args: cobra.MaximumNArgs(1),
	}
	out := cli.AddFormat(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		docs, err := config.Explain(strings.Join(args, ""))
		if err != nil {
			return cli.Usagef("%v", err)
		}
		return out.Print(std.Out, docs, func(c *cli.Columns) { explainFields(c, docs) })
	}
	return cmd
}

// explainFields prints one paragraph per field.
func explainFields(c *cli.Columns, docs []config.FieldDoc) {
	for i, d := range docs {
		var text strings.Builder
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s  (%s", d.Path, d.Type)
		if d.Default != "" {
			fmt.Fprintf(&text, ", default %s", d.Default)
		}
		if d.Min != "" {
			fmt.Fprintf(&text, ", %s to %s", d.Min, d.Max)
		}
		if d.Flag != "" {
			fmt.Fprintf(&text, ", flag --%s", d.Flag)
		}
		text.WriteString(")\n")
		for _, line := range config.Wrap(d.Doc, 100) {
			text.WriteString("    " + line + "\n")
		}
		c.Paragraph(text.String())
	}
}
