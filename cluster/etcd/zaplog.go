package etcd

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newZapLogger returns the zap logger that etcd needs; it writes to slog. Every line is one level
// lower than in etcd, because etcd also returns relevant failures as errors. It panics when etcd
// wants to end the process, so that the caller can make an error of it. While closing is set (nil =
// never), all lines have the level debug, because etcd logs the close of its listeners as errors.
func newZapLogger(log *slog.Logger, closing *atomic.Bool) *zap.Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return zap.New(slogCore{handler: log.Handler(), closing: closing}, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// slogCore is a zapcore.Core on a slog.Handler.
type slogCore struct {
	handler slog.Handler
	closing *atomic.Bool
}

// level maps a level, to debug at most while etcd is closing.
func (c slogCore) level(level zapcore.Level) slog.Level {
	if c.closing != nil && c.closing.Load() {
		return min(slogLevel(level), slog.LevelDebug)
	}
	return slogLevel(level)
}

// slogLevel maps the levels of zap, one step down.
func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.DPanicLevel:
		return slog.LevelError
	case level >= zapcore.ErrorLevel:
		return slog.LevelWarn
	case level >= zapcore.WarnLevel:
		return slog.LevelInfo
	case level >= zapcore.InfoLevel:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

func (c slogCore) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), c.level(level))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{handler: c.handler.WithAttrs(slogAttrs(fields)), closing: c.closing}
}

func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(cmp.Or(entry.Time, time.Now()), c.level(entry.Level), "etcd: "+entry.Message, 0)
	record.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), record)
}

func (slogCore) Sync() error { return nil }

// slogAttrs encodes fields with zap's own methods, so that it supports every type of zap field.
func slogAttrs(fields []zapcore.Field) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		encoder := zapcore.NewMapObjectEncoder()
		f.AddTo(encoder)
		for key, value := range encoder.Fields {
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	return attrs
}
