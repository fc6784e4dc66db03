package bootstrap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// lookAt runs a command against an agent, over TCP.
func lookAt(a *apitest.Agent, args string) result {
	return troupe("", append(strings.Fields(args), "--address", a.Address)...)
}

// TestLookTables holds the tables as a terminal shows them.
func TestLookTables(t *testing.T) {
	backend := apitest.New(2)
	backend.Hooks.Uplink = "uplink0"
	a := apitest.Start(t, backend, nil)
	control := cli.NewControl(a.Socket)
	if err := control.Post(t.Context(), "actors/agent/dataplane/nat44:kill", nil); err != nil {
		t.Fatal(err)
	}
	backend.Drift("add 10.96.0.1:80/TCP")
	if err := control.Post(t.Context(), "resync", api.ResyncRequest{Reason: "drill"}); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"get services": `
SERVICE            CLUSTER-IP   SERVED   STATE     FRONTENDS   ENDPOINTS   ROWS   CHANGED   ERROR
shop/service-000   10.96.0.1    served   in-sync   1           1           1      AGE ago   -
shop/service-001   10.96.0.1    served   in-sync   1           1           1      AGE ago   -

STATE is from what the agent read from VPP AGE ago and has written since; troupe diff reads VPP now
`,
		"get service shop/service-001": `
Service:   shop/service-001
Served:    served: every frontend leads to ready endpoints
State:     in-sync
Changed:   AGE ago

Wanted
FRONTEND           SERVICE            KIND        FROM   ACTION    ENDPOINTS
10.96.0.2:80/TCP   shop/service-001   clusterIP   any    forward   10.1.1.3:8080

Rendered
RENDERER   FRONTEND           SERVICE            BACKENDS        WEIGHT
nat44      10.96.0.2:80/TCP   shop/service-001   10.1.1.3:8080   7

In VPP
RENDERER   FRONTEND           SERVICE            BACKENDS        WEIGHT
nat44      10.96.0.2:80/TCP   shop/service-001   10.1.1.3:8080   7
`,
		"get interfaces": `
INDEX   NAME      KIND     UP     FRONTEND   BACKEND   ADDRESSES         PODS
1       uplink0   uplink   true   true       false     192.168.16.1/24   -
`,
		"get nodes": `
NAME                  ID   VPP ADDRESSES     MANAGEMENT ADDRESSES   POD CIDRS
shop-a (this, held)   1    192.168.16.1/24   192.168.16.1           -
shop-b                2    -                 -                      -

Approximations of this node
RENDERER   SERVICES   WANTED               RENDERED               WHY
nat44      3          connection refused   connection times out   NAT44 sends no refusal
`,
		"get sessions": `
BUSIEST WORKER   LIMIT   ALARM   READ
7                65536   false   AGE ago

By protocol
PROTOCOL   SESSIONS   EXPIRED
tcp        5          1
udp        2          0
`,
		"get sessions shop/service-001": `
PROTOCOL   CLIENT           FRONTEND       BACKEND         CLIENT AS         IDLE   PACKETS   BYTES   EXPIRED
TCP        10.1.1.9:40000   10.96.0.1:80   10.1.1.3:8080   -                 2s     7         700     false
TCP        10.1.1.3:40000   10.96.0.1:80   10.1.1.3:8080   10.1.1.254:1024   5m0s   0         0       true

VPP was asked about 8 of 9 backends
`,
		"actors top --by failures --limit 1": `
ACTOR                   KIND    STATE     INCARNATION   PENDING   RECEIVED   RESTARTS   FAILURES   BUSY   LAST FAILURE
agent/dataplane/nat44   nat44   running   2             0         0          1          1          0s     killed
`,
		"actors show agent/dataplane/nat44": `
Actor:         agent/dataplane/nat44
Kind:          nat44
State:         running
Incarnation:   2, started , 1 restarts, 1 failures
Messages:      0 received, 0 coalesced, 0 discarded, the last 
Busy:          0s

Failures, the newest first
TIME                       INCARNATION   MESSAGE   DECISION   REASON
2026-11-21T08:00:00.000Z   1             -         restart    killed

Messages of all actors of the kind nat44
TYPE     HANDLED   P50   P99
Render   3         1ms   2ms

Other kinds
KIND       MESSAGES FROM   MESSAGES TO
registry   2               -

State
{
  "lives": 2
}
`,
		"actors show agent/world/services": `
Actor:         agent/world/services
Kind:          services
State:         running
Incarnation:   1, started , 0 restarts, 0 failures
Supervises:    one-for-one, any number of failures
Messages:      0 received, 0 coalesced, 0 discarded, the last
Busy:          0s

Messages of all actors of the kind services
TYPE     HANDLED   P50   P99
Render   3         1ms   2ms

Other kinds
KIND       MESSAGES FROM   MESSAGES TO
registry   2               -

State
{
  "lives": 1
}
`,
		"actors dead-letters": `
TIME                       MESSAGE   TO                 FROM   WHY
2026-11-21T08:00:00.000Z   Render    agent/world/gone   -      no such actor

the latest of 70
`,
		"actors trace agent/healer --follow=false": `
2026-11-21T08:00:02.000Z agent/healer drill
    add 10.96.0.1:80/TCP
`,
		"actors --kind service": `
ACTOR                                    KIND      STATE     INCARNATION   PENDING   RECEIVED   RESTARTS   FAILURES   BUSY   LAST FAILURE
agent/world/services/shop~service-000    service   running   1      0         0          0          0          0s     -
agent/world/services/shop~service-001    service   running   1      1         1          0          0          0s     -
`,
		"get actors --sort failures --limit 1": `
ACTOR                   KIND    STATE     INCARNATION   PENDING   RECEIVED   RESTARTS   FAILURES   BUSY   LAST FAILURE
agent/dataplane/nat44   nat44   running   2      0         0          1          1          0s     killed

1 of 7 actors; --limit 0 shows all
`,
		"actors tree": `
agent                     agent       running   -
|- dataplane              dataplane   running   9 of 10 failures left
|  ` + "`" + `- nat44               nat44       running   1 restarts
` + "`" + `- world                  world       running   -
   ` + "`" + `- services            services    running   any number of failures
      |- shop~service-000   service     running   -
      ` + "`" + `- shop~service-001   service     running   1 pending
`,
		"get tree": `
agent                     agent       running   -
|- dataplane              dataplane   running   9 of 10 failures left
|  ` + "`" + `- nat44               nat44       running   1 restarts
` + "`" + `- world                  world       running   -
   ` + "`" + `- services            services    running   any number of failures
      |- shop~service-000   service     running   -
      ` + "`" + `- shop~service-001   service     running   1 pending
`,
		"events": `
SEQ   TIME                       KIND     ACTOR                   OBJECT   ERROR   TEXT
1     2026-11-21T08:00:01.000Z   drill    agent/dataplane/nat44   -        -       kill
2     2026-11-21T08:00:02.000Z   resync   agent/healer            -        -       drill
                                                                                     add 10.96.0.1:80/TCP
`,
		"diff": `
nat44   VPP is in the desired state
`,
		"get resync": `
RENDERER   EPOCH   IN SYNC   VPP READ   BECAUSE   DIFFERED   REASON
nat44      2       true      AGE ago    -         0          -
`,
	} {
		r := lookAt(a, args)
		if r.code != exitOK || r.errs != "" {
			t.Errorf("troupe %s: exit code %d: %s", args, r.code, r.errs)
			continue
		}
		if diff := cmp.Diff(squeeze(want), squeeze(ages.ReplaceAllString(r.out, "AGE ago"))); diff != "" {
			t.Errorf("troupe %s (-want +got):\n%s", args, diff)
		}
	}
}

// squeeze makes the width of columns not matter.
func squeeze(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestLookJSON: -o json prints the answer of the agent, all its pages, also over the control
// socket.
func TestLookJSON(t *testing.T) {
	a := apitest.Start(t, apitest.New(2500), nil)
	r := troupe("", "get", "services", "-o", "json", "--control-socket", a.Socket)
	var services []api.Service
	if err := json.Unmarshal([]byte(r.out), &services); err != nil || len(services) != 2500 {
		t.Fatalf("%d services, %v, %s", len(services), err, r.errs)
	}
	var actors []api.Actor
	r = troupe("", "actors", "-o", "json", "--limit", "0", "--sort", "received", "--control-socket", a.Socket)
	if err := json.Unmarshal([]byte(r.out), &actors); err != nil || len(actors) != 2505 || actors[0].Received != 2499 {
		t.Fatalf("%d actors, %v, %s", len(actors), err, r.errs)
	}
	if r := lookAt(a, "get services --state failed -n shop -o json"); strings.Count(r.out, `"service":`) != 250 {
		t.Errorf("%d failed services", strings.Count(r.out, `"service":`))
	}
}

// TestLookErrors: a missing answer is one line with the reason.
func TestLookErrors(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for args, want := range map[string]string{
		"get service shop/none": "service shop/none: not found",
		"get interfaces":        "unavailable: VPP is not connected",
		"actors --sort size":    `bad query: sort "size" is not one of path, pending, received, restarts, failures, busy`,
		"events --limit 2000":   `bad query: limit "2000" is not a number from 1 to 1000`,
	} {
		if r := lookAt(a, args); r.code != exitFailed || r.errs != "troupe: "+want+"\n" {
			t.Errorf("troupe %s: exit code %d: %swant %s", args, r.code, r.errs, want)
		}
	}
	socket := a.Socket
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	r := troupe("", "get", "nodes", "--control-socket", socket)
	if want := "troupe: ask the agent at " + socket + " (--control-socket, or $TROUPE_AGENT): dial unix " + socket + ": connect: no such file or directory\n"; r.code != exitFailed || r.errs != want {
		t.Errorf("exit code %d: %swant %s", r.code, r.errs, want)
	}
}

// TestDiffFailsOnDifference, so that a script can wait for an agent in sync.
func TestDiffFailsOnDifference(t *testing.T) {
	backend := apitest.New(0)
	backend.Drift("add 10.96.0.1:80/TCP", "delete 10.96.0.2:80/TCP")
	a := apitest.Start(t, backend, nil)
	r := lookAt(a, "get diff")
	if r.code != exitFailed || !strings.Contains(r.out, "delete 10.96.0.2:80/TCP") ||
		r.errs != "troupe: nat44: VPP differs from the desired state: 2 operations would repair it; on the node, 'troupe resync' repairs it now\n" {
		t.Errorf("%+v", r)
	}
}

// TestOneName: an actor has the names that it has for chaos, the configuration may be named once
// for a shell, and a cluster without kubeconfig leads to the node.
func TestOneName(t *testing.T) {
	a := apitest.Start(t, apitest.New(2), nil)
	for name, path := range map[string]string{"nat44": "agent/dataplane/nat44", "agent/world": "agent/world", "shop/service-001": "agent/world/services/shop~service-001"} {
		if r := lookAt(a, "actors show "+name); r.code != exitOK || !strings.Contains(squeeze(r.out), "Actor: "+path+"\n") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	t.Setenv("TROUPE_CONFIG", write(t, t.TempDir(), "agent.yaml", "apiVersion: troupe.dev/v1alpha1\nkind: AgentConfiguration\nnodeName: a\n"))
	if r := troupe(nodeA+web, "plan", "-f", "-"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	r := troupe("", "status", "--all-nodes")
	if !strings.HasSuffix(r.errs, "no kubeconfig: pass --kubeconfig, or set $KUBECONFIG; 'troupe status' asks this node alone\n") {
		t.Errorf("%+v", r)
	}
}

// TestAgentFlagsMayComeFirst: as in kubectl, flags that select the agent may stand before the
// command.
func TestAgentFlagsMayComeFirst(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for _, args := range [][]string{
		{"--address", a.Address, "get", "services"}, {"--address=" + a.Address, "get", "services"}, {"--control-socket", a.Socket, "explain", "shop/service-000"},
	} {
		if r := troupe("", args...); r.code != exitOK || !strings.Contains(r.out, "shop/service-000") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for args, want := range map[string]string{
		"--node n1 --control-socket x get services": "troupe: --control-socket and --node exclude each other\n",
		"--node n1":        "unknown flag: --node",
		"--node=n1 config": "unknown flag: --node",
	} {
		if r := troupe("", strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.errs, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
