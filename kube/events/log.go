package events

import (
	"context"
	"log/slog"
)

// Log is the Recorder of an agent that has no API server to tell: it writes a line to the log.
type Log struct {
	log *slog.Logger
}

var _ Recorder = Log{}

// NewLog returns a recorder that only logs.
func NewLog(log *slog.Logger) Log { return Log{log} }

// Record satisfies Recorder. What was merely found is logged as well: nobody else has told it.
func (l Log) Record(e Event) {
	level := slog.LevelInfo
	if e.Type == Warning {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "event", "object", e.Object.String(), "reason", e.Reason, "action", e.Action, "note", e.Note)
}
