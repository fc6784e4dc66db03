package realvpp

import (
	"os"
	"testing"

	"go.fd.io/govpp/binapi/vpe"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestProcess: VPP answers after each start, and leaves nothing behind.
func TestProcess(t *testing.T) {
	binary, plugins, why := Find()
	if why != "" {
		t.Skip(why)
	}
	var dir string
	t.Run("runs", func(t *testing.T) {
		p := Start(t, binary, plugins)
		dir = p.dir
		for range 2 {
			var version vpe.ShowVersionReply
			NewRaw(t, p.Socket()).Ask(t, &vpe.ShowVersion{}, &version)
			if version.Program != "vpe" && version.Program != "vpp" {
				t.Errorf("it says that it is %+v", version)
			}
			p.Restart(t)
		}
		p.Crash(t)
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
