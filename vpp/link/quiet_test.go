package link

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

func TestQuiet(t *testing.T) {
	for _, tt := range []struct {
		level slog.Level
		want  []string
	}{
		{slog.LevelDebug, []string{"DEBUG", "read", "DEBUG", "write", "INFO", "drop", "WARN", "broken"}},
		{slog.LevelInfo, []string{"INFO", "drop", "WARN", "broken"}},
		{slog.LevelWarn, []string{"WARN", "broken"}},
	} {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tt.level}))
		logger := quietLogger(log, "govpp/test")
		logger.Debug("read")
		logger.Info("write")
		logger.WithFields(logrus.Fields{"b": 2, "a": 1}).Warn("drop")
		logger.Error("broken")
		rest := out.String()
		for _, word := range tt.want {
			_, after, found := strings.Cut(rest, word)
			if !found {
				t.Errorf("level %v: %q misses %q in order", tt.level, out.String(), word)
			}
			rest = after
		}
		if got := strings.Count(out.String(), "\n"); got != len(tt.want)/2 {
			t.Errorf("level %v: %d lines", tt.level, got)
		}
		if strings.Contains(out.String(), "drop") && !strings.Contains(out.String(), "component=govpp/test a=1 b=2") {
			t.Errorf("fields are missing: %q", out.String())
		}
	}
}
