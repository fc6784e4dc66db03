package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// answerOf returns an answer with this body.
func answerOf(t testing.TB, in io.Reader, most int) *answer {
	a := &answer{ctx: t.Context(), in: in, turns: make(chan struct{}, turns), most: most}
	t.Cleanup(a.close)
	return a
}

// endless repeats a text for ever, and counts its bytes.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.read%len(e.text)]
		e.read++
	}
	return len(p), nil
}

// TestLimitsOfAnAnswer: the decoding of an endless answer stops at each kind of limit, and has read
// little more.
func TestLimitsOfAnAnswer(t *testing.T) {
	o := &ConsulOptions{Limits: Limits{Instances: 10, All: 10, Body: 4 << 20}}
	decode := map[string]func(a *answer) error{
		"instances": func(a *answer) error { _, err := decodeInstances(a, o); return err },
		"services":  func(a *answer) error { _, err := decodeNames(a, 10); return err },
	}
	for _, c := range []struct {
		what, begin, text, want string
		most                    int
	}{
		{"instances", "[", `{"Service":{}},`, "more than 10 instances", small},
		{"instances", "[", `{"Service":{"Tags":["k8s"]}},`, "the answer is too large: more than 4194304 bytes", 4<<20 + 1},
		{"instances", "[", " ", "an element of the answer is too large: more than 1048576 bytes", 2 << 20},
		{"instances", `[{"Service":{"Tags":[`, `"",`, "an element of the answer is too large", 2 << 20},
		{"instances", `[{"Service":{"ID":"`, `x`, "an element of the answer is too large", 2 << 20},
		{"instances", `[{"x":`, `[`, "no JSON", 2 << 20},
		{"services", "{", `"a":[],`, "the answer is too large", 4<<20 + 1},
		{"services", `{"`, `a`, "an element of the answer is too large", 2 << 20},
		{"services", `{"a":[`, `"",`, "an element of the answer is too large", 2 << 20},
	} {
		o.ExcludedTag = FromKubernetes
		in := &endless{text: c.text}
		err := decode[c.what](answerOf(t, io.MultiReader(strings.NewReader(c.begin), in), o.Limits.Body))
		if err == nil || !strings.HasPrefix(err.Error(), "decode the "+c.what+": ") || !strings.Contains(err.Error(), c.want) || in.read > c.most {
			t.Errorf("%s%s...: %v after %d bytes, want %s after %d", c.begin, c.text, err, in.read, c.want, c.most)
		}
	}
	text := strings.Builder{}
	for i := range 12 {
		fmt.Fprintf(&text, `"%d":[],`, i)
	}
	if err := decode["services"](answerOf(t, strings.NewReader("{"+text.String()), 1<<20)); err == nil || !strings.Contains(err.Error(), "more than 10 services") {
		t.Error(err)
	}
}

// TestAnswerIsOneValue: an answer must be whole, and nothing may follow.
func TestAnswerIsOneValue(t *testing.T) {
	for text, want := range map[string]string{
		`[{"Service":{"Port":80}}] `:    "",
		`[]`:                            "",
		`[]]`:                           "no JSON",
		`[][]`:                          "more follows",
		`[`:                             "unexpected EOF",
		`[{}`:                           "unexpected EOF",
		`[{},`:                          "EOF",
		``:                              "EOF",
		`null`:                          "is null",
		`{}`:                            "does not begin with [",
		`"x"`:                           "does not begin with [",
		`[{"Service":{"Port":70000}}]`:  "element 1: Service.Port is no port",
		`[{},{"Service":{"Port":"x"}}]`: "element 2: Service.Port has the wrong type",
		`[{"Service":{"Port":99999999999999999999999}}]`: "element 1: Service.Port has the wrong type",
	} {
		for _, in := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			_, err := decodeInstances(answerOf(t, in, 1<<20), &ConsulOptions{Limits: DefaultLimits()})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		}
	}
}

// TestTurns: only answers with a turn are larger than "small". An answer that waits for a turn ends
// with its context.
func TestTurns(t *testing.T) {
	all := make(chan struct{}, turns)
	read := func(ctx context.Context, bytes int) (*answer, error) {
		a := &answer{ctx: ctx, in: &endless{text: " "}, turns: all, most: 1 << 20}
		_, err := io.CopyN(io.Discard, a, int64(bytes))
		return a, err
	}
	var first *answer
	for range turns {
		a, err := read(t.Context(), 2*small)
		if err != nil {
			t.Fatal(err)
		}
		first = a
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := read(ctx, small/2); err != nil {
		t.Errorf("a small one: %v", err)
	}
	cancel()
	if _, err := read(ctx, 2*small); err == nil {
		t.Error("one too many is read")
	}
	first.close()
	if _, err := read(t.Context(), 2*small); err != nil {
		t.Errorf("with a turn: %v", err)
	}
}
