package simulator

import (
	"testing"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vpe"
)

func TestConnectAndPing(t *testing.T) {
	v := listen(t, Options{})
	conn := connect(t, v)
	pong := invoke[memclnt.ControlPingReply](t, conn, &memclnt.ControlPing{})
	if pong.VpePID != v.PID() || pong.VpePID == 0 {
		t.Errorf("pid %d in ping, %d from Go", pong.VpePID, v.PID())
	}
	version := invoke[vpe.ShowVersionReply](t, conn, &vpe.ShowVersion{})
	if version.Version != "25.10-release" {
		t.Errorf("version %q", version.Version)
	}
	cfg := invoke[nat44_ed.Nat44ShowRunningConfigReply](t, conn, &nat44_ed.Nat44ShowRunningConfig{})
	if cfg.Sessions != 0 {
		t.Errorf("plugin is enabled at start")
	}
}
