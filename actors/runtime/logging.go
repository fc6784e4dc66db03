package runtime

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// quietHandler passes on what protoactor has to say from warnings upwards: it reports every failure and every dead letter at Info, which the
// runtime does better itself.
type quietHandler struct{ slog.Handler }

// Enabled satisfies slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs satisfies slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup satisfies slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

// quietLogging gives protoactor our logger instead of its own on stderr.
func quietLogging(log *slog.Logger) actor.ConfigOption {
	quiet := slog.New(quietHandler{log.Handler()})
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet })
}
