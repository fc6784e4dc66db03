package link

import (
	"log/slog"
	"strings"

	"go.fd.io/govpp/adapter/statsclient"
)

// Quiet passes the log lines of GoVPP's client of the stats segment to log, at debug level: every
// failure that matters is returned as an error as well. GoVPP keeps its logger in an unguarded
// package variable, so call it once, before the first connection.
func Quiet(log *slog.Logger) {
	statsclient.Log.SetOutput(quietWriter{log.With("component", "govpp/statsclient")})
}

// quietWriter logs what is written, one line at a time.
type quietWriter struct{ log *slog.Logger }

// Write satisfies io.Writer.
func (w quietWriter) Write(line []byte) (int, error) {
	w.log.Debug("GoVPP logged a line", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}
