package bootstrap

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
)

// TestUsage: errors of usage are one line on stderr, exit with 2 and print nothing else.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"bogus":             `unknown command "bogus" for "troupe"`,
		"--bogus":           "unknown flag: --bogus (see 'troupe --help')",
		"config":            "expected a command: defaults, explain, validate (see 'troupe config --help')",
		"config bogus":      `unknown command "bogus" for "troupe config"`,
		"config validate":   "requires at least 1 arg(s), only received 0",
		"config explain x":  `configuration has no field "x"`,
		"get":               "expected a command: actors, addresses, diff, events, interfaces, nodes, resync, service, services, sessions, tree (see 'troupe get --help')",
		"get service":       "accepts 1 arg(s), received 0",
		"get service web":   `"web" is not the name of a service: expected NAMESPACE/NAME`,
		"actors --limit -1": `invalid argument "-1" for "--limit": expected 0 or more`,
		"simulator":         "expected --api-socket PATH",
	} {
		r := troupe("", strings.Fields(args)...)
		if r.code != exitUsage || r.errs != "troupe: "+want+"\n" || r.out != "" {
			t.Errorf("troupe %s: exit code %d, stdout %q, stderr\n%swant\n%s", args, r.code, r.out, r.errs, want)
		}
	}
}

// TestHelp: help is on stdout and is not an error.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"plan", "--help"}} {
		if r := troupe("", args...); r.code != exitOK || r.errs != "" || !strings.Contains(r.out, "Usage:") {
			t.Errorf("troupe %v: exit code %d, stdout %q, stderr %q", args, r.code, r.out, r.errs)
		}
	}
}

// TestEveryCommandIsExplained and has a usage that fits.
func TestEveryCommandIsExplained(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short description %q", c.CommandPath(), c.Short)
		}
		if c.Runnable() && c.Args == nil {
			t.Errorf("%s takes any arguments", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(cli.Streams{}).cmd)
}

func TestVersion(t *testing.T) {
	r := troupe("", "version", "-o", "json")
	var v node.Version
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Go != runtime.Version() || v.Version == "" {
		t.Errorf("%v in %s", err, r.out)
	}
	if r := troupe("", "version"); !strings.HasPrefix(r.out, "troupe") {
		t.Errorf("version = %q", r.out)
	}
}

func TestConfigCommands(t *testing.T) {
	defaults := troupe("", "config", "defaults")
	if defaults.code != exitOK || !strings.Contains(defaults.out, "apiSocket: /run/vpp/api.sock") {
		t.Fatalf("defaults: %+v", defaults)
	}
	if r := troupe("", "config", "defaults", "-o", "json"); !json.Valid([]byte(r.out)) {
		t.Errorf("defaults -o json: %s", r.out)
	}
	dir := t.TempDir()
	good := write(t, dir, "good.yaml", defaults.out)
	bad := write(t, dir, "bad.yaml", strings.Replace(defaults.out, "apiSocket:", "apiSokcet:", 1)+"what: 1\n")
	if r := troupe("", "config", "validate", good); r.code != exitOK || r.out != good+": ok\n" {
		t.Errorf("validate: %+v", r)
	}
	if r := troupe(defaults.out, "config", "validate", "-"); r.code != exitOK {
		t.Errorf("validate standard input: %+v", r)
	}
	r := troupe("", "config", "validate", bad, good, dir+"/none")
	if r.code != exitFailed || r.out != good+": ok\n" {
		t.Errorf("validate: %+v", r)
	}
	for _, want := range []string{`vpp.apiSokcet: unknown field; did you mean "apiSocket"?`, "what: unknown field", "none: no such file"} {
		if countLines(strings.Split(r.errs, "\n"), []string{want}) != 1 {
			t.Errorf("no line with %q in\n%s", want, r.errs)
		}
	}
	explain := troupe("", "config", "explain", "vpp.apiSocket")
	if want := "vpp.apiSocket  (string, default /run/vpp/api.sock, flag --vpp-api-socket)\n"; !strings.HasPrefix(explain.out, want) {
		t.Errorf("explain: %q", explain.out)
	}
}

// TestAMistypedCommandIsSuggested, of a group as well.
func TestAMistypedCommandIsSuggested(t *testing.T) {
	for args, want := range map[string]string{
		"get servcies": `unknown command "servcies" for "troupe get": did you mean services?`,
		"statsu":       `unknown command "statsu" for "troupe": did you mean status?`,
		"get xyz":      `unknown command "xyz" for "troupe get"`,
	} {
		if r := troupe("", strings.Fields(args)...); r.code != exitUsage || r.errs != "troupe: "+want+"\n" {
			t.Errorf("troupe %s: exit code %d: %swant %s", args, r.code, r.errs, want)
		}
	}
}
