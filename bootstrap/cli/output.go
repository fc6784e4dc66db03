package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

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

// Safe is a stream that people read. Names, errors and answers come from others, who must not
// control the terminal: control characters and those that reorder text become "?". Main puts it
// around standard output and standard error, so every command writes to one.
type Safe struct{ To io.Writer }

// NewSafe returns a Safe around a stream, once.
func NewSafe(to io.Writer) *Safe { return &Safe{raw(to)} }

// Write satisfies io.Writer. A character that is divided between two calls is lost.
func (s *Safe) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.To, Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Lines replaces the characters of a text that would control the terminal; lines and tabs stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, text)
}

// Printable is Lines for one line: lines and tabs become spaces.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return visible(r)
	}, text)
}

// visible returns a character, or "?" for one that controls a terminal or the order of a text.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
		return '?'
	}
	return r
}

// Escaped returns a JSON document with escape sequences of JSON for what Safe would replace.
func Escaped(document []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(document) {
		if r != '\n' && visible(r) != r {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// Control writes, unchanged, what the program itself has made to control the terminal.
func Control(to io.Writer, sequence string) error {
	_, err := io.WriteString(raw(to), sequence)
	return err
}

// raw is the stream behind a Safe.
func raw(to io.Writer) io.Writer {
	if s, ok := to.(*Safe); ok {
		return s.To
	}
	return to
}
