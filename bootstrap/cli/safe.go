package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

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
