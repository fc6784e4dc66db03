package informers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestBridgeKlog: client-go's records about its work have the level debug, errors keep their level.
func TestBridgeKlog(t *testing.T) {
	defer klog.ClearLogger()
	for level, want := range map[slog.Level]int{slog.LevelDebug: 2, slog.LevelInfo: 1} {
		var out bytes.Buffer
		BridgeKlog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		klog.InfoS("from client-go", "answer", 42)
		klog.ErrorS(nil, "from client-go", "answer", 42)
		if text := out.String(); strings.Count(text, `msg="from client-go" answer=42`) != want || !strings.Contains(text, "level=ERROR") {
			t.Errorf("logged at %s: %q", level, text)
		}
	}
}
