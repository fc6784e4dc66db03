package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

// hostile is what an agent or an archive may send: sequences that clear the screen, set the title,
// hide text, go back in the line, and reorder it; UTF-8 and raw bytes.
const hostile = "a\x1b[2Jb\x1b]0;title\x07c\u009b2Jd\re\x7ff\u202eg\u2066h\u2028i\x9bj\x00k\bl"

// commands reports whether a text has something that controls a terminal.
func commands(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028'
	}) || strings.Contains(text, "\x9bj")
}

// TestNothingReachesTheTerminal: whichever way a text takes, it does not control the terminal.
func TestNothingReachesTheTerminal(t *testing.T) {
	if !commands(hostile) {
		t.Fatal("the text is harmless")
	}
	ways := map[string]func(*Safe){
		"line":      func(s *Safe) { fmt.Fprintln(s, errors.New(hostile)) },
		"row":       func(s *Safe) { c := NewColumns(s, Screen{}); c.Row(hostile, "in-sync"); _ = c.Flush() },
		"note":      func(s *Safe) { c := NewColumns(s, Screen{}); c.Row("a"); c.Note(hostile); _ = c.Flush() },
		"section":   func(s *Safe) { c := NewColumns(s, Screen{}); c.Section(hostile); _ = c.Flush() },
		"paragraph": func(s *Safe) { c := NewColumns(s, Screen{}); c.Paragraph(hostile + "\n"); _ = c.Flush() },
	}
	for _, format := range Formats {
		f := Format(format)
		ways[format] = func(s *Safe) {
			_ = f.Print(s, map[string]string{"text": hostile}, func(c *Columns) { c.Row(hostile) })
		}
	}
	for name, way := range ways {
		var out strings.Builder
		if way(&Safe{&out}); out.Len() == 0 || commands(out.String()) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

// TestJSONIsUnchanged: scripts get the text as it is.
func TestJSONIsUnchanged(t *testing.T) {
	const text = "a\x1b[2Jb\u009b2J\x7f\u202e\nß"
	var out strings.Builder
	f := Format("json")
	if err := f.Print(&Safe{&out}, []string{text}, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got) != 1 || got[0] != text {
		t.Errorf("%q, %v", got, err)
	}
}

// TestColorsAndControl: the program itself still colors states, clears the screen and shows lines
// and tabs.
func TestColorsAndControl(t *testing.T) {
	var out strings.Builder
	s := &Safe{&out}
	c := NewColumns(s, Screen{Width: 80, color: true})
	c.Row("failed")
	if err := errors.Join(c.Flush(), Control(s, "\r\x1b[K")); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(s, "one\ttwo\n")
	if want := red + "failed" + plainColor + "\n\r\x1b[Kone\ttwo\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
