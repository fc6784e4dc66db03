package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestBench: the command measures every figure but packets at every size, so often as it is asked
// to; a restart of the agent changes nothing in VPP.
func TestBench(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run([]string{"-sizes", "20,250", "-repeat", "2", "-idle", "20ms", "-only", "restart,vpp-restart,idle", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const measured = 11
	if len(r.Figures) != 2*measured || r.Machine.Cores == 0 || r.Agent == "" || r.VPP == "" {
		t.Errorf("%d figures, want %d of each size: %s", len(r.Figures), measured, out.String())
	}
	for _, f := range r.Figures {
		again := f.Name == "restart: operations on VPP"
		if len(f.Values) != 2 || f.Least > f.Median || f.Median > f.Most || again && f.Most != 0 || f.Name == "start: operations on VPP" && f.Least < float64(f.Services) {
			t.Errorf("%+v", f)
		}
	}
	out.Reset()
	if err := r.print(&out); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 3+2*measured {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestBenchWithAPIServer: the services of a real API server, and single changes there.
func TestBenchWithAPIServer(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run([]string{"-source", "api", "-sizes", "20", "-repeat", "1", "-idle", "20ms", "-changes", "5", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const measured = 17
	if len(r.Figures) != measured || r.Source != sourceAPI {
		t.Errorf("%d figures, want %d: %s", len(r.Figures), measured, out.String())
	}
	for _, f := range r.Figures {
		if strings.HasPrefix(f.Name, "change to ") && f.Least <= 0 || f.Name == "start: operations on VPP" && f.Least < float64(f.Services) {
			t.Errorf("%+v", f)
		}
	}
}

// TestFlags: odd flags are errors that name them.
func TestFlags(t *testing.T) {
	for _, arguments := range [][]string{{"-sizes", "0"}, {"-sizes", "1,x"}, {"-sizes", "100001"}, {"-repeat", "0"}, {"-changes", "0"}, {"-source", "etcd"}, {"-only", "start"}, {"-o", "yaml"}, {"more"}, {"-no"}} {
		if _, err := parse(arguments, &bytes.Buffer{}); err == nil {
			t.Errorf("%v is taken", arguments)
		}
	}
}

// TestMedian: of an even number of values it is the mean of the two in the middle.
func TestMedian(t *testing.T) {
	f := newFigures()
	for _, v := range []float64{4, 1, 3, 10} {
		f.add("a", 1, "s", v)
	}
	f.add("b", 1, "s", 2)
	f.add("a", 2, "s", 7)
	all := f.all()
	if len(all) != 3 || all[0].Median != 3.5 || all[0].Least != 1 || all[0].Most != 10 || all[1].Services != 2 || all[1].Median != 7 || all[2].Name != "b" {
		t.Errorf("%+v", all)
	}
}
