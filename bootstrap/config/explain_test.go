package config

import (
	"strings"
	"testing"
)

// TestEveryFieldIsExplained: the comments are the documentation that users get.
func TestEveryFieldIsExplained(t *testing.T) {
	docs, err := Explain("")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{}
	for _, d := range docs {
		if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") {
			t.Errorf("%s: documentation %q is not a sentence", d.Path, d.Doc)
		}
		if other := flags[d.Flag]; d.Flag != "" && other != "" {
			t.Errorf("%s and %s share the flag --%s", other, d.Path, d.Flag)
		}
		flags[d.Flag] = d.Path
		if (d.Type == "duration" || d.Type == "number") && (d.Min == "" || d.Max == "") {
			t.Errorf("%s: a %s needs bounds", d.Path, d.Type)
		}
	}
}

// TestDefaultsExplainEveryField: the file that is printed has every field with its whole
// explanation above it, and each can be asked for alone.
func TestDefaultsExplainEveryField(t *testing.T) {
	docs, err := Explain("")
	if err != nil {
		t.Fatal(err)
	}
	printed, explanation := []string{}, []string{}
	for line := range strings.Lines(Marshal(Defaults(), true)) {
		line = strings.TrimSpace(line)
		if text, is := strings.CutPrefix(line, "# "); is {
			explanation = append(explanation, text)
		} else if name, _, is := strings.Cut(line, ":"); is {
			printed, explanation = append(printed, name+": "+strings.Join(explanation, " ")), nil
		}
	}
	if len(printed) != len(docs) {
		t.Fatalf("%d fields are printed, there are %d", len(printed), len(docs))
	}
	for i, d := range docs {
		if want := d.Path[strings.LastIndexByte(d.Path, '.')+1:] + ": " + d.Doc; printed[i] != want {
			t.Errorf("%s is printed as %q, want %q", d.Path, printed[i], want)
		}
		if alone, err := Explain(d.Path); err != nil || alone[0].Path != d.Path || alone[0].Doc != d.Doc {
			t.Errorf("%s cannot be explained alone: %v", d.Path, err)
		}
	}
}

func TestExplain(t *testing.T) {
	docs, err := Explain("nat44.timeouts")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, d := range docs {
		paths = append(paths, d.Path)
	}
	want := "nat44.timeouts nat44.timeouts.udp nat44.timeouts.tcpEstablished nat44.timeouts.tcpTransitory nat44.timeouts.icmp"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("explained %s, want %s", got, want)
	}
	if d := docs[1]; d.Default != "1m" || d.Type != "duration" || d.Min != "1s" || d.Doc != "Idle timeout of UDP sessions." {
		t.Errorf("nat44.timeouts.udp = %+v", d)
	}

	if _, err := Explain("vpp.apisocket"); err == nil || !strings.Contains(err.Error(), `did you mean "vpp.apiSocket"?`) {
		t.Errorf("error = %v", err)
	}
}

func TestDurationText(t *testing.T) {
	for in, want := range map[string]string{"90s": "1m30s", "60s": "1m", "3600s": "1h", "1h30m": "1h30m", "100ms": "100ms", "0s": "0s", "-60s": "-1m", "7440s": "2h4m"} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := d.String(); got != want {
			t.Errorf("%s is written %s, want %s", in, got, want)
		}
	}
}
