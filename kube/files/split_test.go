package files

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string // "number@line text"
	}{
		{"nothing", "", nil},
		{"one", "a: 1\n", []string{`1@1 "a: 1\n"`}},
		{"without an end of line", "a: 1", []string{`1@1 "a: 1"`}},
		{"two", "a: 1\n---\nb: 2\n", []string{`1@1 "a: 1\n"`, `2@2 "   \nb: 2\n"`}},
		{"empty ones do not count", "---\n---\n# nothing\n---\n\n---\na: 1\n---\n", []string{`1@6 "   \na: 1\n"`}},
		{"content beside the separator", "--- {a: 1} # c\n---\tb\n", []string{`1@1 "    {a: 1} # c\n"`, `2@2 "   \tb\n"`}},
		{"end mark", "a: 1\n...\nb: 2\n", []string{`1@1 "a: 1\n"`, `2@3 "b: 2\n"`}},
		{"directives", "%YAML 1.2\n---\na: 1\n", []string{`1@2 "   \na: 1\n"`}},
		{"windows", "a: 1\r\n---\r\nb: 2\r\n", []string{`1@1 "a: 1\r\n"`, `2@2 "   \r\nb: 2\r\n"`}},
		{"mark of UTF-8", "\ufeffa: 1\n", []string{`1@1 "a: 1\n"`}},
		{"not at the start of a line", "a: |\n  ---\nb: '---'\n----\n", []string{`1@1 "a: |\n  ---\nb: '---'\n----\n"`}},
		{"only a separator", "---", nil},
	} {
		for name, reader := range map[string]io.Reader{"": strings.NewReader(c.in), " byte by byte": iotest.OneByteReader(strings.NewReader(c.in))} {
			t.Run(c.name+name, func(t *testing.T) {
				var got []string
				err := split(reader, func(d document) { got = append(got, fmt.Sprintf("%d@%d %q", d.number, d.line, d.text)) })
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("documents (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestSplitLongLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	var got []document
	err := split(strings.NewReader(long+"---\n---\nb"), func(d document) {
		d.text = []byte(string(d.text))
		got = append(got, d)
	})
	if err != nil || len(got) != 2 || string(got[0].text) != long+"---\n" || got[1].line != 2 {
		t.Errorf("%d documents, %v", len(got), err)
	}
}

func TestSplitLimits(t *testing.T) {
	var got []document
	take := func(d document) { got = append(got, document{number: d.number, long: d.long}) }
	in := strings.Repeat("a: 1\n", 300_000) + "---\nb: 1\n"
	err := splitWithin(strings.NewReader(in), 2<<20, 1<<20, take)
	if diff := cmp.Diff([]document{{number: 1, long: true}, {number: 2}}, got, cmp.AllowUnexported(document{})); diff != "" || err != nil {
		t.Errorf("after a document that is too long: %v\n%s", err, diff)
	}
	err = splitWithin(strings.NewReader(in), 1<<20, 1<<20, take)
	if err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a stream that is too long: %v", err)
	}
}

func TestSplitFailures(t *testing.T) {
	for _, mark := range []string{"\xff\xfea\x00", "\xfe\xff\x00a"} {
		if err := split(strings.NewReader(mark), func(document) { t.Error("read UTF-16") }); err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Errorf("UTF-16: %v", err)
		}
	}
	broken := errors.New("disk")
	read := 0
	err := split(io.MultiReader(strings.NewReader("a: 1\n"), iotest.ErrReader(broken)), func(document) { read++ })
	if !errors.Is(err, broken) || read != 1 {
		t.Errorf("error of the reader: %v; %d documents before it", err, read)
	}
}
