package bootstrap

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// invocation is a call of the program: its subcommand and the names of its flags. Values and
// arguments are the reader's.
type invocation struct {
	command string // "get services"
	flags   []string
}

func (i invocation) String() string {
	return strings.TrimSpace(i.command + " " + strings.Join(i.flags, " "))
}

// TestEveryCommandOfTheReadmeIsRun: a script runs each command of the README with all its flags.
func TestEveryCommandOfTheReadmeIsRun(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	promised := promisedIn(string(readme))
	if len(promised) < 5 {
		t.Fatalf("only %d commands found in the README: %v", len(promised), promised)
	}
	run := runByScripts(t)
	for _, want := range promised {
		if !slices.ContainsFunc(run, func(got invocation) bool { return covers(got, want) }) {
			t.Errorf("no script runs: troupe %s", want)
		}
	}
}

// covers reports whether a call is the promised one, perhaps with more flags.
func covers(got, want invocation) bool {
	return got.command == want.command && !slices.ContainsFunc(want.flags, func(flag string) bool { return !slices.Contains(got.flags, flag) })
}

// promisedIn finds the calls of the program in the code of a Markdown text: in blocks and between
// back quotes.
func promisedIn(markdown string) []invocation {
	var code []string
	var prose strings.Builder
	for i, part := range strings.Split(markdown, "```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n") // the language stands in the first line
			code = append(code, strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n")...)
		} else {
			prose.WriteString(part)
		}
	}
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose.String(), -1) {
		code = append(code, span[1])
	}
	found := map[string]invocation{}
	for _, line := range code {
		for command := range strings.SplitSeq(line, "|") {
			if one, ok := parseInvocation(strings.Fields(command)); ok {
				found[one.String()] = one
			}
		}
	}
	return slices.Collect(maps.Values(found))
}

// parseInvocation reads the words of a command line: "troupe ..." or "go run . ...".
func parseInvocation(words []string) (invocation, bool) {
	switch {
	case len(words) > 1 && words[0] == "troupe":
		words = words[1:]
	case len(words) > 3 && slices.Equal(words[:3], []string{"go", "run", "."}):
		words = words[3:]
	default:
		return invocation{}, false
	}
	root, known := newRoot(cli.Streams{}), invocation{}
	cmd, rest, err := root.cmd.Find(words)
	if err != nil || cmd == root.cmd {
		return invocation{command: "(unknown) " + strings.Join(words, " ")}, true
	}
	known.command = strings.TrimPrefix(cmd.CommandPath(), "troupe ")
	for _, word := range rest {
		if strings.HasPrefix(word, "-") && word != "-" {
			name, _, _ := strings.Cut(word, "=")
			known.flags = append(known.flags, name)
		}
	}
	slices.Sort(known.flags)
	return known, true
}

// runByScripts finds the calls in the scripts.
func runByScripts(t *testing.T) []invocation {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var all []invocation
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(archive.Comment)) {
			words := strings.Fields(line)
			if len(words) > 2 && words[0] == "start" {
				words = append([]string{"troupe"}, words[2:]...) // start NAME ARGS...
			}
			if i := slices.Index(words, "troupe"); i == 1 && words[0] == "exec" {
				words = words[1:]
			}
			if one, ok := parseInvocation(words); ok {
				all = append(all, one)
			}
		}
	}
	return all
}

// TestPromisedIn: the test above finds every command.
func TestPromisedIn(t *testing.T) {
	const text = "Run `troupe get services` or\n```sh\ngo run . demo --exit\nkubectl get svc | go run . plan -f - --node-name N\n" +
		"troupe agent --node-name \"$N\" \\\n  --vpp=simulated\ngo test ./...\n```\nand `troupe nonsense`, not troupe diff.\n"
	var got []string
	for _, one := range promisedIn(text) {
		got = append(got, one.String())
	}
	slices.Sort(got)
	want := []string{"(unknown) nonsense", "agent --node-name --vpp", "demo --exit", "get services", "plan --node-name -f"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
