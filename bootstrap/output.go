package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// formats are the values of -o, the default first.
var formats = []string{"table", "json", "yaml"}

// format is the value of -o.
type format string

// addFormat adds the flag -o to a command.
func addFormat(cmd *cobra.Command) *format {
	f := format(formats[0])
	cmd.Flags().VarP(&f, "output", "o", "format of the output: "+strings.Join(formats, ", "))
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

// print writes a value as JSON or YAML, or calls table. It writes nothing if the value cannot be encoded.
func (f *format) print(to io.Writer, value any, table func(*columns)) error {
	if *f == "table" {
		c := newColumns(to)
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

// columns writes tables as kubectl does: upper-case headings, three spaces between columns, "-" for an empty cell.
type columns struct{ w *tabwriter.Writer }

// newColumns writes tables to a stream.
func newColumns(to io.Writer) *columns { return &columns{tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)} }

// row writes one line.
func (c *columns) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = strings.NewReplacer("\t", " ", "\n", " ").Replace(fmt.Sprint(cell))
		if texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(c.w, strings.Join(texts, "\t"))
}

// section starts a new table with a title.
func (c *columns) section(title string) {
	fmt.Fprintf(c.w, "\n%s\n", title)
}

// flush writes the table; a tabwriter knows the widths of columns only then.
func (c *columns) flush() error {
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
