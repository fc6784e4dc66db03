package strictyaml

import (
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"a: 1\nb: [x, ~, true, 1.5, 2026-11-21]": `{"a":1,"b":["x",null,true,1.5,"2026-11-21"]}`,
		"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}":  `{"a":{"x":1,"y":2},"b":{"y":3,"x":1}}`,
		"a: .nan":                                `line 1: ".nan" is not a number of JSON`,
		"a: 1\nb: 2\na: 3":                       `line 3: the key "a" occurs twice`,
		"? [a]\n: b":                             "line 1: a key is not a string",
		"a: &a [*a]":                             "line 1: is nested too deeply",
		"a: {<<: 5}":                             "line 1: is not a mapping",
		"a: " + strings.Repeat("x", 1000):        "line 1: is too large",
	} {
		documents, problem := Parse([]byte(in))
		if problem != nil {
			t.Fatal(problem)
		}
		budget := Budget(2000)
		got, err := budget.JSON(documents[0].Content[0], 900)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want || budget < 900 || budget >= 2000 {
			t.Errorf("%q: %s, want %s; %d steps left", in, got, want, budget)
		}
	}
}
