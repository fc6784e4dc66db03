package sessions

import (
	"context"
	"fmt"
	"strings"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// summary is the only command that shows the present limit: no API message returns it, and the
// statistics have the limit with which the plugin was enabled. The command only reads; the link
// refuses commands that change sessions, because they destroy the mappings.
const summary = "show nat44 summary"

// Look makes a survey: limit, sessions by protocol, expired ones. It costs VPP one pass over its
// sessions. An error wraps what the link reports, or ErrNotUnderstood.
func Look(ctx context.Context, c link.Caller) (Survey, error) {
	reply, err := link.Ask[*vlib.CliInbandReply](ctx, c, &vlib.CliInband{Cmd: summary})
	if err != nil {
		return Survey{}, fmt.Errorf("survey NAT sessions: %w", err)
	}
	return ParseSummary(reply.Reply)
}

// ParseSummary reads the output of "show nat44 summary" of VPP 25.10.
func ParseSummary(text string) (Survey, error) {
	s, at, seen := Survey{Known: true}, &Count{}, 0
	var ignored Count
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		var limit, fib uint32
		var count Count
		switch {
		case scan(line, "max translations per thread: %d fib %d", &limit, &fib):
			if fib == 0 {
				s.Limit, s.LimitKnown = limit, true
			}
		case scan(line, "total sessions: %d (timed out: %d)", &count.Sessions, &count.Expired):
			s.All, seen = count, seen+1
		case strings.HasSuffix(line, " sessions:"):
			at = &ignored
			if p, known := protocolOf(line); known {
				at, seen = &s.By[p], seen+1
			}
		case scan(line, "    total: %d (timed out: %d)", &count.Sessions, &count.Expired):
			*at = count
		}
	}
	if seen != 1+int(Protocols) {
		return Survey{}, fmt.Errorf("survey NAT sessions: %w: %q", ErrNotUnderstood, shorten(text))
	}
	return s, nil
}

// protocolOf parses the heading of a section.
func protocolOf(line string) (Protocol, bool) {
	for p := range Protocols {
		if line == p.String()+" sessions:" {
			return p, true
		}
	}
	return 0, false
}

// scan is fmt.Sscanf for a line that has to match as a whole, leading spaces included.
func scan(line, format string, into ...any) bool {
	indent := len(format) - len(strings.TrimLeft(format, " "))
	if len(line)-len(strings.TrimLeft(line, " ")) != indent {
		return false
	}
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

// shorten keeps an error on one line.
func shorten(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Ask replaces the statistics where they are not available: it reads the running configuration and
// makes a survey. Where it cannot parse the survey, it sums up the users of the table instead, and
// the survey is not known.
func Ask(ctx context.Context, c link.Caller) (Usage, Survey, error) {
	config, err := link.Ask[*nat44_ed.Nat44ShowRunningConfigReply](ctx, c, &nat44_ed.Nat44ShowRunningConfig{})
	if err != nil {
		return Usage{}, Survey{}, fmt.Errorf("read NAT sessions: %w", err)
	}
	if config.Sessions == 0 {
		return Usage{}, Survey{}, nil
	}
	usage := Usage{Enabled: true, Base: config.Sessions, Costly: true}
	survey, err := Look(ctx, c)
	if err == nil {
		usage.Busiest, usage.Total = survey.All.Sessions, survey.All.Sessions
		return usage, survey, nil
	}
	users, err := readUsers(ctx, c)
	if err != nil {
		return Usage{}, Survey{}, fmt.Errorf("read NAT sessions: %w", err)
	}
	for _, u := range users {
		usage.Total += u.Sessions
	}
	usage.Busiest = usage.Total
	return usage, Survey{}, nil
}

// WithLimit completes the sessions that a Reader returned with ErrNoLimit. Unlike Ask, it costs VPP
// no pass over its sessions.
func WithLimit(ctx context.Context, c link.Caller, usage Usage) (Usage, error) {
	config, err := link.Ask[*nat44_ed.Nat44ShowRunningConfigReply](ctx, c, &nat44_ed.Nat44ShowRunningConfig{})
	if err != nil {
		return Usage{}, fmt.Errorf("read the limit of NAT sessions: %w", err)
	}
	if config.Sessions == 0 {
		return Usage{}, nil
	}
	usage.Enabled, usage.Base = true, config.Sessions
	return usage, nil
}

// Raise sets the limit of a worker. It must not be lower than the present one, which Decide never
// returns.
func Raise(ctx context.Context, c link.Caller, limit uint32) error {
	if _, err := link.Ask[*nat44_ed.Nat44SetSessionLimitReply](ctx, c, &nat44_ed.Nat44SetSessionLimit{SessionLimit: limit}); err != nil {
		return fmt.Errorf("set NAT session limit to %d: %w", limit, err)
	}
	return nil
}
