package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn is a table on a screen.
func drawn(t *testing.T, s Screen, table func(c *Columns)) string {
	t.Helper()
	var out strings.Builder
	c := NewColumns(&out, s)
	table(c)
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// endpoints is a table with a long cell and a long last cell.
func endpointsTable(c *Columns) {
	c.Row("NAME", "ENDPOINTS", "STATE", "WHY")
	c.Row("web", "10.1.1.1:80,10.1.1.2:80,10.1.1.3:80,10.1.1.4:80,10.1.1.5:80,10.1.1.6:80", "in-sync", "")
	c.Row("api", "10.1.2.1:80", "failed", "VPP has refused the operation three times in a row, which has a reason")
	c.Note("add 10.96.0.1:80/TCP")
}

// TestTableFitsTheTerminal: no line is wider than the terminal; cells are wrapped, and long ones
// are cut. Without a terminal all is shown.
func TestTableFitsTheTerminal(t *testing.T) {
	for width, want := range map[int]string{
		60: `NAME   ENDPOINTS              STATE     WHY
web    10.1.1.1:80,           in-sync   -
       10.1.1.2:80,
       10.1.1.3:80,
       10.1.1.4:80…
api    10.1.2.1:80            failed    VPP has refused the
                                        operation three
                                        times in a row,
                                        which has a reason
    add 10.96.0.1:80/TCP
`,
		0: `NAME   ENDPOINTS                                                                 STATE     WHY
web    10.1.1.1:80,10.1.1.2:80,10.1.1.3:80,10.1.1.4:80,10.1.1.5:80,10.1.1.6:80   in-sync   -
api    10.1.2.1:80                                                               failed    VPP has refused the operation three times in a row, which has a reason
    add 10.96.0.1:80/TCP
`,
	} {
		if diff := cmp.Diff(want, drawn(t, Screen{Width: width}, endpointsTable)); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// TestOptionalColumnsGoFirst: where not all fit, words are not divided before the optional columns
// are left out; -o wide has all.
func TestOptionalColumnsGoFirst(t *testing.T) {
	table := func(c *Columns) {
		c.Row("SERVICE", "STATE", Optional("GENERATION"), "ERROR")
		c.Row("shop/web", "in-sync", "1099511627801", "none at all")
	}
	for width, want := range map[int]string{
		0:  "SERVICE    STATE     GENERATION      ERROR\nshop/web   in-sync   1099511627801   none at all\n",
		45: "SERVICE    STATE     GENERATION      ERROR\nshop/web   in-sync   1099511627801   none at\n                                     all\n",
		35: "SERVICE    STATE     ERROR\nshop/web   in-sync   none at all\n",
	} {
		if diff := cmp.Diff(want, drawn(t, Screen{Width: width}, table)); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// TestAddressesAreNotDivided: a table whose words do not fit is written cell by cell; an optional
// column without content is left out on any screen.
func TestAddressesAreNotDivided(t *testing.T) {
	table := func(c *Columns) {
		c.Row("FRONTEND", Optional("AFFINITY"), "ENDPOINT", "WHY")
		c.Row("192.168.16.100:30080/TCP", "", "192.168.17.100:18080", "it is not ready")
		c.Row("[fd00:10:96::1234]:80/TCP", "", "[fd00:10:1::5]:8080", "")
	}
	for width, want := range map[int]string{
		0: `FRONTEND                    ENDPOINT               WHY
192.168.16.100:30080/TCP    192.168.17.100:18080   it is not ready
[fd00:10:96::1234]:80/TCP   [fd00:10:1::5]:8080    -
`,
		40: `FRONTEND   192.168.16.100:30080/TCP
ENDPOINT   192.168.17.100:18080
WHY        it is not ready

FRONTEND   [fd00:10:96::1234]:80/TCP
ENDPOINT   [fd00:10:1::5]:8080
WHY        -
`,
	} {
		if diff := cmp.Diff(want, drawn(t, Screen{Width: width}, table)); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
	if got := wrap("to 192.168.16.100:30080/TCP", 26); len(got) != 2 || got[1] != "192.168.16.100:30080/TCP" {
		t.Errorf("divided: %q", got)
	}
}

// TestTableIsNeverWider whatever its cells are, while each column can have its least width, and a
// wide one loses nothing.
func TestTableIsNeverWider(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(r, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching(`[a-zäß ,;.:0-9]{0,80}`), n, n), 1, 6).Draw(r, "rows")
		width := rapid.IntRange(n*leastWidth+(n-1)*len(gap), 200).Draw(r, "width")
		table := func(c *Columns) {
			for _, row := range rows {
				cells := make([]any, n)
				for i := range row {
					cells[i] = row[i]
				}
				c.Row(cells...)
			}
		}
		for line := range strings.Lines(drawn(t, Screen{Width: width}, table)) {
			if have := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); have > width {
				r.Fatalf("%d characters in %d: %q", have, width, line)
			}
		}
		wide := drawn(t, Screen{}, table)
		for _, row := range rows {
			for _, cell := range row {
				if !strings.Contains(wide, strings.TrimRight(cell, " ")) {
					r.Fatalf("%q is missing in %q", cell, wide)
				}
			}
		}
	})
}

// TestColorsAreForTerminals: only states have a color, only on terminals, and a color does not
// change the width.
func TestColorsAreForTerminals(t *testing.T) {
	plain := drawn(t, Screen{Width: 80}, endpointsTable)
	colored := drawn(t, Screen{Width: 80, color: true}, endpointsTable)
	if strings.Contains(plain, "\x1b") || !strings.Contains(colored, red+"failed"+plainColor) || !strings.Contains(colored, green+"in-sync"+plainColor) {
		t.Errorf("%q\n%q", plain, colored)
	}
	if got := strings.NewReplacer(red, "", green, "", plainColor, "").Replace(colored); got != plain {
		t.Error(cmp.Diff(plain, got))
	}
}

// TestTextOfOthersIsText: a name or an error with control characters does not command the terminal.
func TestTextOfOthersIsText(t *testing.T) {
	got := drawn(t, Screen{}, func(c *Columns) { c.Row("a\x1b[2Jb\rc\u009bd\te\nf", "g") })
	if got != "a?[2Jb?c?d e f   g\n" {
		t.Errorf("%q", got)
	}
}

// TestStructsAreTables: a tag makes a column; a table with a title is left out without rows.
func TestStructsAreTables(t *testing.T) {
	type row struct {
		Name    string    `column:"NAME"`
		Hidden  string    // no column
		Since   time.Time `column:"SINCE"`
		IPs     []string  `column:"IPS"`
		Age     time.Time `column:"AGE,wide,ago"`
		Seconds float64   `column:"BUSY"`
	}
	got := drawn(t, Screen{}, func(c *Columns) {
		c.Table("", []row{{Name: "a", Hidden: "b", Since: time.Unix(0, 0), IPs: []string{"c", "d"}, Seconds: 1.5}})
		c.Table("Empty", []row{})
	})
	if diff := cmp.Diff("NAME   SINCE                      IPS   BUSY\na      1970-01-01T00:00:00.000Z   c,d   1.5s\n", got); diff != "" {
		t.Error(diff)
	}
}
