package events

import (
	"context"
	"log/slog"
)

// Log is the Recorder of an agent without an API server: it writes a line to the log.
type Log struct {
	log *slog.Logger
}

var _ Recorder = Log{}

// NewLog returns a recorder that only logs.
func NewLog(log *slog.Logger) Log { return Log{log} }

// Record satisfies Recorder. It logs standing states as well, because no API server has them from
// an earlier run.
func (l Log) Record(e Event) {
	level := slog.LevelInfo
	if e.Type == Warning {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "event", "object", e.Object.String(), "reason", e.Reason, "action", e.Action, "note", e.Note)
}
