package bootstrap

import (
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// ages are ages, which differ from run to run.
var ages = regexp.MustCompile(`(less than 1 s|\d+ (s|min|h|days)) ago`)

func TestExplainCommand(t *testing.T) {
	a := apitest.Start(t, apitest.New(10), nil)
	for args, tt := range map[string]struct {
		code      int
		out, errs string
	}{
		"explain shop/service-000": {0, `
Service:   shop/service-000
Served:    served: every frontend leads to ready endpoints
State:     in-sync
Actor:     agent/world/services/shop~service-000, running, incarnation 1, 0 messages pending
VPP:       read AGE ago

Frontends
FRONTEND           KIND        FROM   ACTION    ENDPOINTS       IN VPP
10.96.0.1:80/TCP   clusterIP   any    forward   10.1.1.3:8080   as wanted

Endpoints that are not used everywhere
ENDPOINTS         WHY
10.1.1.4 shop/b   not ready

Draining endpoints
10.1.1.9:8080   draining, 12 connections, since 08:00; kept: 3 connections of another service

In VPP
RENDERER   FRONTEND           SERVICE            BACKENDS        WEIGHT
nat44      10.96.0.1:80/TCP   shop/service-000   10.1.1.3:8080   7
`, ""},
		"explain --packet 10.1.1.9 10.96.0.1:80/TCP": {0, `
Packet:       10.1.1.9 -> 10.96.0.1:80/TCP
Client:       pod
Action:       forward
Frontend:     clusterIP of shop/service-000, for clients: any
Because:      it is a frontend of shop/service-000 for clients: any
Row in VPP:   as wanted
VPP:          read AGE ago

Destination becomes one of
ENDPOINT        SHARE    SHARE IN VPP   SOURCE
10.1.1.3:8080   100.0%   100.0%         kept

In VPP
RENDERER   FRONTEND           SERVICE            BACKENDS        WEIGHT
nat44      10.96.0.1:80/TCP   shop/service-000   10.1.1.3:8080   7
`, ""},
		"explain --packet 10.1.1.9 192.0.2.1:80/TCP": {0, "Action:       none\nBecause:      no service has the address\nRow in VPP:   no row, and none is needed\n", ""},
		"explain --packet 10.1.1.9":                  {2, "", "troupe: expected --packet SOURCE DESTINATION:PORT/PROTOCOL\n"},
		"explain shop/web shop/api":                  {2, "", "troupe: expected one service NAMESPACE/NAME, or --packet\n"},
		"explain shop/service-009 -o yaml":           {0, "because:\n- VPP refused the row\n", ""},
		"explain shop/none":                          {1, "", "troupe: service shop/none: not found\n"},
		"explain web":                                {2, "", `troupe: "web" is not the name of a service: expected NAMESPACE/NAME` + "\n"},
	} {
		r := lookAt(a, args)
		r.out = ages.ReplaceAllString(r.out, "AGE ago")
		if r.code != tt.code || r.errs != tt.errs || !strings.Contains("\n"+r.out, tt.out) {
			t.Errorf("troupe %s: exit code %d\n%s%s\nwant\n%s", args, r.code, r.out, r.errs, tt.out)
		}
	}
}

// TestExplainReadsVPP: rows that another program has removed are missing, although the agent does
// not know it yet.
func TestExplainReadsVPP(t *testing.T) {
	backend := apitest.New(10)
	backend.Drift("add row 10.96.0.1:80/TCP -> 1 backends", "add reject route 10.96.0.9/32")
	a := apitest.Start(t, backend, nil)
	for args, want := range map[string]string{
		"explain shop/service-000":                   "10.96.0.1:80/TCP clusterIP any forward 10.1.1.3:8080 missing",
		"explain --packet 10.1.1.9 10.96.0.1:80/TCP": "10.1.1.3:8080 100.0% unknown kept",
	} {
		r := lookAt(a, args)
		const repair = "'troupe resync' repairs it now\nadd row 10.96.0.1:80/TCP -> 1 backends"
		if out := squeeze(r.out); !strings.Contains(out, want) || !strings.Contains(out, repair) || strings.Contains(out, "In VPP\n") || strings.Contains(out, "10.96.0.9") {
			t.Errorf("troupe %s: %s", args, out)
		}
	}
}
