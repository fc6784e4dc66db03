package strictyaml

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// server is what the tests read.
type server struct {
	Name   string
	Ports  []string
	Labels map[string]string
	On     bool
}

func (s *server) read(d *Decoder, n *Node, path string) {
	s.Labels = map[string]string{}
	Object(map[string]Value{
		"name": Text(&s.Name), "ports": List(&s.Ports, Text), "on": Flag(&s.On),
		"labels": Map(func(key string) Value {
			return Scalar("a string", func(text string) bool { s.Labels[key] = text; return true }, "!!str")
		}),
	})(d, n, path)
}

// read reads every document of the text.
func read(t *testing.T, d *Decoder, text string) (all []server, problems []string) {
	t.Helper()
	documents, problem := Parse([]byte(text))
	if d.Budget != nil {
		d.Budget.Grow(len(text))
	}
	for _, document := range documents {
		var s server
		d.Read(document.Content[0], "", s.read)
		all = append(all, s)
	}
	if problem != nil {
		d.Problems = append(d.Problems, problem)
	}
	for _, p := range d.Sorted() {
		problems = append(problems, p.Error())
	}
	return all, problems
}

func TestProblems(t *testing.T) {
	for in, want := range map[string]string{
		"nam: x":                          `line 1: nam: unknown field; did you mean "name"?`,
		"xyz: x":                          `line 1: xyz: unknown field`,
		"\"a\\nb\": x":                    `line 1: "a\nb": unknown field`,
		"name: a\nname: b":                "line 2: name: is duplicate",
		"{a: b}: c":                       "line 1: expected a string as key, found an object",
		"ports: [a, 5]":                   `line 1: ports[1]: expected a string, found "5" (int)`,
		"ports: [~]":                      "line 1: ports[0]: is empty",
		"labels: {a: &x b, c: *x}":        "line 1: labels.c: YAML aliases are not supported",
		"<<: {name: a}":                   "line 1: <<: unknown field",
		"on: yes":                         `line 1: on: expected true or false, found "yes" (str)`,
		"on: " + strings.Repeat("x", 100): `line 1: on: expected true or false, found "` + strings.Repeat("x", 64) + `" (str)`,
		"[1]":                             "line 1: expected an object, found a list",
		"name: a\n---\nname: 5":           `line 3: name: expected a string, found "5" (int)`,
		"\nname: [a":                      "line 2: is not YAML: did not find expected ',' or ']'",
		"\nname: [a\n\n \n":               "line 2: is not YAML: did not find expected ',' or ']'",
		"name: [a\nports: b\non: c":       "line 2: is not YAML: did not find expected ',' or ']'",
		"name: a\n\tb: c":                 "line 2: is not YAML: found a tab character that violates indentation",
		"name: *x":                        "is not YAML: unknown anchor 'x' referenced",
	} {
		if _, got := read(t, &Decoder{}, in); len(got) != 1 || got[0] != want {
			t.Errorf("%q:\ngot  %q\nwant %q", in, got, want)
		}
	}
}

// TestLines: the line of every field and element that was read.
func TestLines(t *testing.T) {
	d := &Decoder{Lines: map[string]int{}}
	if _, problems := read(t, d, "name: a\nports:\n- b\n- c\nlabels: {x: y}\n"); problems != nil {
		t.Error(problems)
	}
	want := map[string]int{"name": 1, "ports": 2, "ports[0]": 3, "ports[1]": 4, "labels": 5, "labels.x": 5}
	if diff := cmp.Diff(want, d.Lines); diff != "" {
		t.Error(diff)
	}
}

// TestAliases: with a budget, aliases and merges have their meaning in YAML.
func TestAliases(t *testing.T) {
	got, problems := read(t, &Decoder{Budget: new(Budget), NullKeeps: true}, `
name: &n a
labels: &l {x: *n, y: b}
---
ports: [c]
labels: {<<: [&l {x: d, y: e}, {y: f, z: g}], x: h}
on: ~
`)
	want := []server{{Name: "a", Labels: map[string]string{"x": "a", "y": "b"}}, {
		Ports: []string{"c"}, Labels: map[string]string{"x": "h", "y": "e", "z": "g"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || problems != nil {
		t.Error(problems, diff)
	}
}

// TestHostile: what aliases expand, and the number of problems, is limited.
func TestHostile(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "k%d: v, ", i)
	}
	keys := b.String()
	for name, in := range map[string]string{
		"merges":    "labels: {<<: [&l {" + keys + "}, " + strings.Repeat("*l, ", 20_000) + "]}",
		"elements":  "name: a\nports: &p [" + strings.Repeat("e, ", 20_000) + "]\nlabels: {<<: [" + strings.Repeat("{x: *p}, ", 20_000) + "]}",
		"circle":    "labels: &l {<<: *l, x: *l}",
		"unknown":   "{" + keys + "}",
		"duplicate": "labels: {" + strings.Repeat("x: y, ", 20_000) + "}",
	} {
		d := &Decoder{Budget: new(Budget)}
		if _, problems := read(t, d, in); len(problems) == 0 || len(problems) > maxProblems {
			t.Errorf("%s: %d problems", name, len(problems))
		}
	}
	d := &Decoder{Budget: new(Budget)}
	*d.Budget = -7 - work*8
	if _, problems := read(t, d, "name: a"); problems != nil {
		t.Errorf("after a hostile document: %v", problems)
	}
}

func TestSuggestion(t *testing.T) {
	known := []string{"apiSocket", "at", "for", "nodeName"}
	for got, want := range map[string]string{
		"apiSoket": "apiSocket", "apisocket": "apiSocket", "nodename": "nodeName", "fro": "for", "xx": "", "a": "at", "name": "",
		strings.Repeat("x", 1000): "",
	} {
		if s := Suggestion(got, known); s == "" && want != "" || !strings.Contains(s, want) || want == "" && s != "" {
			t.Errorf("%.20q: %q, want %q", got, s, want)
		}
	}
}

// FuzzDecoder: no input stops the process. A problem has one line, and the same input gives the
// same result.
func FuzzDecoder(f *testing.F) {
	f.Add("name: &n a\nlabels: {<<: {x: *n}}\n---\nports: [a]\n")
	f.Add("a: &a [*a, {<<: *a}]")
	f.Fuzz(func(t *testing.T, in string) {
		for _, budget := range []bool{false, true} {
			run := func() ([]server, []string) {
				d := &Decoder{}
				if budget {
					d.Budget = new(Budget)
				}
				return read(t, d, in)
			}
			all, problems := run()
			again, same := run()
			if !slices.Equal(problems, same) || !cmp.Equal(all, again) {
				t.Errorf("another result: %v, %v", problems, same)
			}
			for _, p := range problems {
				if strings.Contains(p, "\n") {
					t.Errorf("problem %q", p)
				}
			}
		}
	})
}
