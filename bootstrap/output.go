package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// formats are the values of -o, the default first. A wide table is not fitted to the terminal.
var formats = []string{"table", "wide", "json", "yaml"}

// format is the value of -o.
type format string

// addFormat adds the flag -o to a command.
func addFormat(cmd *cobra.Command) *format {
	f := format(formats[0])
	cmd.Flags().VarP(&f, "output", "o", "format of the output: "+strings.Join(formats, ", "))
	completeFlag(cmd, "output", formats...)
	return &f
}

// String satisfies pflag.Value.
func (f *format) String() string { return string(*f) }

// Type satisfies pflag.Value.
func (*format) Type() string { return "format" }

// Set satisfies pflag.Value.
func (f *format) Set(text string) error {
	if !slices.Contains(formats, text) {
		return fmt.Errorf("expected one of %s", strings.Join(formats, ", "))
	}
	*f = format(text)
	return nil
}

// print writes a value as JSON or YAML, or calls table. It writes nothing if the value cannot be
// encoded.
func (f *format) print(to io.Writer, value any, table func(*columns)) error {
	if *f == "table" || *f == "wide" {
		s := screenOf(to)
		if *f == "wide" {
			s.width = 0
		}
		c := newColumns(to, s)
		table(c)
		return c.flush()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	out := text.Bytes()
	if *f == "yaml" {
		var err error
		if out, err = yaml.JSONToYAML(out); err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
	}
	if _, err := to.Write(out); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
