package informers

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// BridgeKlog sends the log of client-go to this logger. Records below a warning, such as the end of
// each watch, get the level debug. client-go logs through the global logger of klog, so this is a
// setting of the process: main calls it once, before it makes the first client.
func BridgeKlog(log *slog.Logger) { klog.SetSlogLogger(slog.New(quieter{log.Handler()})) }

// quieter is a handler that gives every record below a warning the level debug.
type quieter struct{ slog.Handler }

// lowered returns the level that a record gets in the log.
func lowered(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}

// Enabled satisfies slog.Handler.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(level))
}

// Handle satisfies slog.Handler.
func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return q.Handler.Handle(ctx, r)
}

// WithAttrs satisfies slog.Handler.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

// WithGroup satisfies slog.Handler.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }
