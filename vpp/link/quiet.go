package link

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/sirupsen/logrus"
	"go.fd.io/govpp/adapter/statsclient"
)

// Quiet passes the log lines of GoVPP's client of the stats segment from logrus to log, one level lower: every failure that matters is returned as an
// error as well. GoVPP keeps its logger in an unguarded package variable, so call it once, before the first connection.
func Quiet(log *slog.Logger) {
	statsclient.Log = quietLogger(log, "govpp/statsclient")
}

// quietLogger makes a logrus logger that writes nothing itself.
func quietLogger(log *slog.Logger, component string) *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	logger.SetFormatter(noFormat{})
	logger.SetLevel(logrus.WarnLevel)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		logger.SetLevel(logrus.DebugLevel)
	}
	logger.AddHook(&slogHook{log: log.With("component", component)})
	return logger
}

// noFormat avoids formatting lines that logrus does not write.
type noFormat struct{}

// Format returns nothing.
func (noFormat) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

// slogHook passes logrus entries on.
type slogHook struct {
	log *slog.Logger
}

// Levels says that every level is passed on.
func (*slogHook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire passes an entry on, with its fields in a fixed order.
func (h *slogHook) Fire(entry *logrus.Entry) error {
	attrs := make([]slog.Attr, 0, len(entry.Data))
	for _, key := range slices.Sorted(maps.Keys(entry.Data)) {
		attrs = append(attrs, slog.Any(key, entry.Data[key]))
	}
	h.log.LogAttrs(context.Background(), quietLevel(entry.Level), entry.Message, attrs...)
	return nil
}

// quietLevel lowers a level by one.
func quietLevel(level logrus.Level) slog.Level {
	switch level {
	case logrus.PanicLevel, logrus.FatalLevel:
		return slog.LevelError
	case logrus.ErrorLevel:
		return slog.LevelWarn
	case logrus.WarnLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
