package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// externalDocument leads a port of 203.0.113.1 to a pod.
func externalDocument(to string) []byte {
	return []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", "staticMappings": [{"external": "203.0.113.1:443/TCP", "to": ["` + to + `"]}]}`)
}

// leads waits until VPP leads the port somewhere; "" = nowhere. Its row may stay for connections of
// services to the same endpoint.
func leads(t *testing.T, a *Agent, to string) {
	t.Helper()
	eventually(t, "203.0.113.1:443 leads to "+to, func() bool {
		rows := probe.Rows(a.Simulator())
		at := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "203.0.113.1:443/6 ") })
		return to == "" && at < 0 || to != "" && at >= 0 && strings.Contains(rows[at], to)
	})
}

// TestExternalFromEverywhere: file, etcd and control socket are layers of one configuration; when
// one goes, the one below is served; what the control socket was told outlives the process.
func TestExternalFromEverywhere(t *testing.T) {
	cfg := everything(t)
	cfg.DataDir = shortDir(t)
	cfg.External.File = filepath.Join(cfg.DataDir, "outside.yaml")
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	control := cli.NewControl(cfg.API.ControlSocket)
	connected, err := a.etcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := cfg.Etcd.Prefix + "/external/" + cfg.NodeName + "/edge"
	file := strings.Replace("apiVersion: troupe.dev/v1alpha1\nkind: ExternalConfiguration\nstaticMappings:\n- {external: 203.0.113.1:443/TCP, to: [TO]}\n", "TO", "'10.1.1.3:8080'", 1)
	if err := os.WriteFile(cfg.External.File, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	leads(t, a, "10.1.1.3:8080")
	if _, err := connected.Put(t.Context(), key, string(externalDocument("10.1.1.4:8080"))); err != nil {
		t.Fatal(err)
	}
	leads(t, a, "10.1.1.4:8080")
	if _, err := connected.Put(t.Context(), cfg.Etcd.Prefix+"/external/other-node/edge", string(externalDocument("10.9.9.9:1"))); err != nil {
		t.Fatal(err)
	}
	var result api.ExternalResult
	if err := control.Put(t.Context(), "external/ops", externalDocument("10.1.1.5:8080"), &result); err != nil || result.Cause == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if !slices.ContainsFunc(a.Simulator().Rows(), func(row string) bool { return strings.Contains(row, "10.1.1.5:8080") }) {
		t.Error("it was answered before it was in VPP")
	}
	var all api.External
	if err := control.Get(t.Context(), "external", nil, &all); err != nil || len(all.Layers) != 3 || len(all.Items) != 3 || !all.Complete {
		t.Errorf("%+v, %v", all, err)
	}
	if e := all.Items[0]; e.Source != "ops" || e.State != "in-sync" || all.Items[2].State != "shadowed" || all.Items[2].Source != "file" {
		t.Errorf("entries %+v", all.Items)
	}

	// Another process over the same directory, VPP and etcd's successor.
	vpp := a.Simulator()
	quiescent(t, a)
	stop(t, a)
	_ = vpp
	again := *cfg
	b := run(t, &again)
	ready(t, b)
	leads(t, b, "10.1.1.5:8080")
	if err := control.Delete(t.Context(), "external/ops", nil); err != nil {
		t.Fatal(err)
	}
	leads(t, b, "10.1.1.4:8080")
	if connected, err = b.etcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := connected.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	leads(t, b, "10.1.1.3:8080")
	if err := b.Kill(address.External); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cfg.External.File); err != nil {
		t.Fatal(err)
	}
	leads(t, b, "")
}

// TestExternalRestartWritesNothing: an agent that finds the mappings of the one before as they
// should be changes nothing.
func TestExternalRestartWritesNothing(t *testing.T) {
	first := everything(t)
	first.DataDir, first.Etcd.Mode = shortDir(t), config.EtcdNone
	a := run(t, first)
	ready(t, a)
	if _, err := a.Backend().ApplyExternal(t.Context(), "ops", externalDocument("10.1.1.5:8080")); err != nil {
		t.Fatal(err)
	}
	quiescent(t, a)
	letIn(t, a)
	vpp := a.Simulator()
	before := vpp.Counters().Mutating()
	second := *first
	second.VPP.Mode, second.VPP.APISocket = config.VPPSocket, vpp.Socket()
	second.API.ControlSocket, second.API.HTTPAddress = "", "127.0.0.1:0"
	b, err := Start(&second, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ready(t, b)
	quiescentVPP(t, b, vpp)
	if n := vpp.Counters().Mutating() - before; n != 0 {
		t.Errorf("%d writes", n)
	}
	stop(t, b)
	leads(t, a, "10.1.1.5:8080")
}

// TestExternalErrors: what an apply is answered says what is wrong, and with which status.
func TestExternalErrors(t *testing.T) {
	cfg := everything(t)
	cfg.Etcd.Mode = config.EtcdNone
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	control := cli.NewControl(cfg.API.ControlSocket)
	serving := func() string { return strings.Join(probe.Rows(a.Simulator()), "\n") }
	rows := serving()
	taken := `{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", "staticMappings": [
		{"external": "203.0.113.1:443/TCP", "to": ["10.1.1.5:8080"]}, {"external": "10.96.0.1:443/TCP", "to": ["10.1.1.5:8080"]}]}`
	for _, tt := range []struct {
		name, source, document string
		is                     error
		want                   string
	}{
		{"invalid", "ops", string(externalDocument("x")), api.ErrInvalid, `staticMappings[0] 203.0.113.1:443/TCP: to[0]: "x" is not an IPv4 address with a port`},
		{"of a service", "ops", taken, api.ErrConflict, "10.96.0.1:443/TCP: is in use by default/kubernetes"},
		{"name", "file", string(externalDocument("10.1.1.5:8080")), api.ErrInvalid, `source "file": expected a name`},
		{"name of etcd", "etcd:x", string(externalDocument("10.1.1.5:8080")), api.ErrInvalid, "expected a name"},
	} {
		err := control.Put(t.Context(), "external/"+tt.source, []byte(tt.document), nil)
		var refused *cli.AgentError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || (tt.is == api.ErrConflict) != (refused.Status == 409) || (tt.is == api.ErrInvalid) != (refused.Status == 400) {
			t.Errorf("%s: %+v", tt.name, err)
		}
		if now := serving(); now != rows {
			t.Errorf("%s: rows are now\n%s\nand were\n%s", tt.name, now, rows)
		}
	}
	if err := cli.NewClient(a.HTTPAddress()).Put(t.Context(), "external/ops", externalDocument("10.1.1.5:8080"), nil); err == nil {
		t.Error("it was taken over TCP")
	}
	var none api.External
	if err := control.Get(t.Context(), "external/unknown", nil, &none); err != nil || len(none.Layers)+len(none.Items) != 0 {
		t.Errorf("an unknown source: %+v, %v", none, err)
	}
}
