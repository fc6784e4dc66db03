package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats are the values of -o, the default first. A wide table is not fitted to the terminal.
var Formats = []string{"table", "wide", "json", "yaml"}

// Format is the value of -o.
type Format string

// AddFormat adds the flag -o to a command.
func AddFormat(cmd *cobra.Command) *Format {
	f := Format(Formats[0])
	cmd.Flags().VarP(&f, "output", "o", "format of the output: "+strings.Join(Formats, ", "))
	CompleteFlag(cmd, "output", Formats...)
	return &f
}

// String satisfies pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type satisfies pflag.Value.
func (*Format) Type() string { return "format" }

// Set satisfies pflag.Value.
func (f *Format) Set(text string) error {
	if !slices.Contains(Formats, text) {
		return fmt.Errorf("expected one of %s", strings.Join(Formats, ", "))
	}
	*f = Format(text)
	return nil
}

// Print writes a value as JSON or YAML, or calls table. It writes nothing if the value cannot be
// encoded.
func (f *Format) Print(to io.Writer, value any, table func(*Columns)) error {
	if *f == "table" || *f == "wide" {
		s := ScreenOf(to)
		if *f == "wide" {
			s.Width = 0
		}
		c := NewColumns(to, s)
		table(c)
		return c.Flush()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	out := Escaped(text.Bytes())
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

// CompleteFlag completes a flag with fixed values.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	// fails only without the flag
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Streams are the standard streams of a command.
type Streams struct {
	In   io.Reader
	Out  io.Writer
	Errs io.Writer
}

// Read reads a file, or standard input for "-".
func (s Streams) Read(name string) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	data, err := io.ReadAll(s.In)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return data, nil
}

// ScreenOf is the screen of a stream. Only a terminal limits the width of tables and has colors,
// unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
func ScreenOf(to io.Writer) Screen {
	if f, ok := to.(*Framed); ok {
		return f.Screen
	}
	file, ok := raw(to).(*os.File)
	if !ok {
		return Screen{}
	}
	width, terminal := widthOf(file)
	if !terminal {
		return Screen{}
	}
	return Screen{Width: width, color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Framed is a stream with a screen that replaces its own.
type Framed struct {
	io.Writer
	Screen Screen
}
