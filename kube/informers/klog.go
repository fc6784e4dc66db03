package informers

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// BridgeKlog sends what client-go logs to this logger. client-go logs through the global logger of klog, so this is a setting of the
// process: main calls it once, before the first client is made.
func BridgeKlog(log *slog.Logger) { klog.SetSlogLogger(log) }
