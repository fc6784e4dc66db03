package informers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestBridgeKlog(t *testing.T) {
	defer klog.ClearLogger()
	var out bytes.Buffer
	BridgeKlog(slog.New(slog.NewTextHandler(&out, nil)))
	klog.InfoS("from client-go", "answer", 42)
	if text := out.String(); !strings.Contains(text, `msg="from client-go"`) || !strings.Contains(text, "answer=42") {
		t.Errorf("logged: %q", text)
	}
}
