package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestMain: in the network namespace of kube-proxy, this program is the command.
func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestBench: the command measures every figure but packets at every size, so often as it is asked
// to; a restart of the agent changes nothing in VPP.
func TestBench(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run([]string{"-sizes", "20,250", "-repeat", "2", "-idle", "20ms", "-only", "bare,restart,vpp-restart,idle", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const measured = 15
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
	if err := run([]string{"-source", "api", "-sizes", "20", "-repeat", "1", "-idle", "20ms", "-changes", "5", "-only", "restart,vpp-restart,idle,changes", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const measured = 19
	if len(r.Figures) != measured || r.Source != sourceAPI {
		t.Errorf("%d figures, want %d: %s", len(r.Figures), measured, out.String())
	}
	for _, f := range r.Figures {
		if strings.HasPrefix(f.Name, "change to ") && f.Least <= 0 || f.Name == "start: operations on VPP" && f.Least < float64(f.Services) {
			t.Errorf("%+v", f)
		}
	}
}

// TestKubeProxy: kube-proxy with the services of the same API server. It is compared with the agent
// beside a real VPP only: the build of kube-proxy takes minutes.
func TestKubeProxy(t *testing.T) {
	if os.Getenv("TROUPE_VPP_BIN") == "" {
		t.Skip("no real VPP to compare kube-proxy with: TROUPE_VPP_BIN is not set")
	}
	if err := noRules(); err != nil {
		t.Skipf("no rules of nftables in a network namespace, which needs nft and root: %v", err)
	}
	var out, progress bytes.Buffer
	if err := run([]string{"-source", "api", "-sizes", "20", "-repeat", "1", "-idle", "200ms", "-changes", "3", "-only", "kube-proxy", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const agent, measured = 5, 13
	if len(r.Figures) != agent+measured {
		t.Errorf("%d figures, want %d: %s", len(r.Figures), agent+measured, out.String())
	}
	for _, f := range r.Figures {
		const second = 1000 // that kube-proxy waits after a change
		after := strings.HasPrefix(f.Name, "kube-proxy: change after a change ")
		if strings.HasPrefix(f.Name, "kube-proxy: ") && f.Name != "kube-proxy: idle" && f.Least <= 0 || after && f.Least < second/2 {
			t.Errorf("%+v", f)
		}
	}
}

// TestBenchWithFeed: changes, many of them, services of both families and of many endpoints, with a
// feed in place of an API server. Where nothing is busy VPP gets every change; of a large service
// it gets the one endpoint that flaps.
func TestBenchWithFeed(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run([]string{"-source", "feed", "-sizes", "20", "-repeat", "1", "-only", "changes,churn,big", "-changes", "5", "-churn", "100ms", "-rate", "20", "-dual", "-o", "json"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range r.Figures {
		switch {
		case strings.HasSuffix(f.Name, ": operations on VPP each time"):
			if seen++; f.Most != 1 {
				t.Errorf("%+v", f)
			}
		case strings.HasPrefix(f.Name, "change to ") || strings.HasPrefix(f.Name, "20 changes/s, ") && strings.Contains(f.Name, ", p"):
			if seen++; f.Least <= 0 {
				t.Errorf("%+v", f)
			}
		}
	}
	if want := 2 + 3 + 2*3; seen != want {
		t.Errorf("%d figures of changes, want %d: %s", seen, want, out.String())
	}
}

// TestProcessEnds: a process that ends by itself ends the wait for anything.
func TestProcessEnds(t *testing.T) {
	n := &node{Context: t.Context(), dir: t.TempDir()}
	var err error
	if n.agent, err = n.spawn("agent", "sh", "-c", "echo no more; exit 3"); err != nil {
		t.Fatal(err)
	}
	defer kill(n.agent)
	err = n.await("agent is ready", func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "a process has ended\nno more") {
		t.Errorf("%v", err)
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
