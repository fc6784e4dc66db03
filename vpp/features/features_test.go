package features

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/messages"
)

// recorded returns the message table of a VPP from testdata: its messages of the modules that the
// agent uses.
func recorded(t *testing.T, version string) map[string]bool {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	names := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			names[line] = true
		}
	}
	return names
}

// tableOf makes a Table of names with CRC.
func tableOf(names map[string]bool) Table {
	return func(name, crc string) bool {
		if crc != "" {
			return names[name+"_"+crc]
		}
		for known := range names {
			if i := strings.LastIndexByte(known, '_'); known[:i] == name {
				return true
			}
		}
		return false
	}
}

// lacking returns the features that a VPP lacks, each with a summary of the missing messages.
func lacking(names map[string]bool) map[string]string {
	lacks := map[string]string{}
	for _, f := range Check(tableOf(names)) {
		if len(f.GetMissing()) > 0 {
			lacks[f.GetName()] = Summary(f.GetMissing())
		}
	}
	return lacks
}

// TestVersions: the features that each VPP of docs/vpp-versions.md lacks.
func TestVersions(t *testing.T) {
	const of2606 = "CNAT of 26.06"
	another := ": it has another version of the message, the agent is for VPP 24.06 to 26.06"
	for version, want := range map[string]map[string]string{
		"24.06": {
			of2606:          "cnat_set_snat_policy_37a3ce23" + another + "; cnat_snat_addresses_dump_51077d14, cnat_snat_addresses_details_09ae6b38, feature_cnat_enable_disable_5501adee, feature_cnat_enable_disable_reply_e8d4e804: this version of cnat has no such message",
			"IPv6 services": message(&feature.FeatureIsEnabled{}) + ", " + message(&feature.FeatureIsEnabledReply{}) + ": this version of feature has no such message",
		},
		"25.10": {
			of2606: "cnat_set_snat_policy_37a3ce23" + another + "; cnat_snat_addresses_dump_51077d14, cnat_snat_addresses_details_09ae6b38, feature_cnat_enable_disable_5501adee, feature_cnat_enable_disable_reply_e8d4e804: this version of cnat has no such message",
		},
		"26.06": {},
	} {
		if got := lacking(recorded(t, version)); !maps.Equal(got, want) {
			t.Errorf("VPP %s lacks\n%q, want\n%q", version, got, want)
		}
	}
}

// TestDocument: the first table of docs/vpp-versions.md agrees with the recorded message tables
// about each feature.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "vpp-versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	versions := []string{"24.06", "25.10", "26.06"}
	rows := make([]string, len(features))
	for i, f := range features {
		rows[i] = "| " + f.name + " |"
	}
	for _, version := range versions {
		for i, f := range Check(tableOf(recorded(t, version))) {
			var missing []string
			for _, m := range f.GetMissing() {
				if name := m.GetMessage()[:strings.LastIndexByte(m.GetMessage(), '_')]; !strings.HasSuffix(name, "_reply") {
					missing = append(missing, "`"+name+"`")
				}
			}
			cell := " yes |"
			if len(missing) > 0 {
				cell = " no: " + strings.Join(missing, ", ") + " |"
			}
			rows[i] += cell
		}
	}
	want := "| feature | " + strings.Join(versions, " | ") + " |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/vpp-versions.md has to have this table:\n%s", want)
	}
}

func message(msg api.Message) string { return msg.GetMessageName() + "_" + msg.GetCrcString() }

func TestLacks(t *testing.T) {
	all := recorded(t, "25.10")
	without := func(drop func(string) bool) []*messages.VPPFeature {
		names := maps.Clone(all)
		maps.DeleteFunc(names, func(name string, _ bool) bool { return drop(name) })
		return Check(tableOf(names))
	}
	renderers := []string{"nat44", "routes"}
	for name, tc := range map[string]struct {
		drop func(string) bool
		want string
	}{
		"nothing":                  {func(string) bool { return false }, ""},
		"what Kubernetes does not": {func(name string) bool { return strings.HasPrefix(name, "bridge_domain") }, ""},
		"a renderer that is not used": {
			func(name string) bool {
				return strings.HasPrefix(name, "cnat_") || strings.HasPrefix(name, "feature_cnat")
			}, "",
		},
		"a plugin": {
			func(name string) bool { return strings.HasPrefix(name, "acl_") || strings.HasPrefix(name, "macip_") },
			"source ranges and drops are not enforced, what has them is not served (the plugin acl is not loaded (plugins in VPP's startup.conf))",
		},
		"a reply": {
			func(name string) bool { return strings.HasPrefix(name, "nat44_user_details") },
			"expired NAT44 sessions are not freed, and the limit stays what it is (" + message(&nat44_ed.Nat44UserDetails{}) + ": this version of nat44_ed has no such message)",
		},
	} {
		if got := Lacks(without(tc.drop), renderers); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := Lacks(Check(tableOf(map[string]bool{})), append(renderers, "cnat")); strings.Count(got, "are not served (the plugin") != 2 {
		t.Errorf("an empty table: %q", got)
	}
}

// TestEveryRequestHasAFeature: the table has exactly the requests that the packages of vpp/ send.
func TestEveryRequestHasAFeature(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range features {
		for _, msg := range f.requests {
			typ := reflect.TypeOf(msg).Elem()
			listed[typ.PkgPath()+"."+typ.Name()] = true
		}
	}
	sent := requestsInCode(t)
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !listed[name] {
			t.Errorf("%s sends %s, which is in no feature", sent[name], name)
		}
	}
	for name := range listed {
		if sent[name] == "" {
			t.Errorf("nothing sends %s", name)
		}
	}
}

// requestsInCode returns the requests of which the packages of vpp/ make values, each with one of
// the files.
func requestsInCode(t *testing.T) map[string]string {
	t.Helper()
	requests := map[string]bool{}
	for _, registered := range api.GetRegisteredMessages() {
		for _, msg := range registered {
			if typ := reflect.TypeOf(msg).Elem(); msg.GetMessageType() == api.RequestMessage && !strings.HasSuffix(msg.GetMessageName(), "_reply") {
				requests[typ.PkgPath()+"."+typ.Name()] = true
			}
		}
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	sent := map[string]string{}
	for _, name := range files {
		switch room := path.Base(filepath.Dir(name)); {
		case strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"simulator", "realvpp", "virtual", "features"}, room):
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range madeIn(file) {
			if requests[made] {
				sent[made] = name
			}
		}
	}
	return sent
}

// madeIn returns the types of imported packages of which a file has composite literals.
func madeIn(file *ast.File) (types []string) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		local := path.Base(imported)
		if i.Name != nil {
			local = i.Name.Name
		}
		imports[local] = imported
	}
	// the package interface is named interfaces
	imports["interfaces"] = max(imports["interfaces"], imports["interface"])
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			if selector, ok := literal.Type.(*ast.SelectorExpr); ok {
				if pkg, ok := selector.X.(*ast.Ident); ok {
					types = append(types, imports[pkg.Name]+"."+selector.Sel.Name)
				}
			}
		}
		return true
	})
	return types
}
