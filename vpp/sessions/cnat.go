package sessions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// SourcePorts is how many source ports CNAT has for each protocol of a NAT address: 49152 to 65534
// (cnat_allocate_port in VPP's cnat_src_policy.c).
const SourcePorts = 65535 - 49152

// Commands that only read, in VPP 25.10 and 26.06 alike. Neither visits the sessions. The
// statistics segment has the number of sessions in 26.06 only (/cnat/sessions/total), as a gauge,
// which GoVPP's client does not know.
const (
	cnatSessions = "show cnat timestamp"
	cnatErrors   = "show errors"
)

// CNAT is how many sessions CNAT has, and how many packets it refused since VPP started or its
// counters were cleared.
type CNAT struct {
	// Sessions are the connections, of all protocols, with source NAT and without.
	Sessions uint64
	// NoPort are the packets that were dropped because each source port of their protocol was
	// taken.
	NoPort uint64
	// NoSession are the packets that were dropped because the table was full, which only 26.06
	// counts.
	NoSession uint64
}

// LookCNAT reads how full the tables of CNAT are. An error wraps what the link reports, or
// ErrNotUnderstood: the plugin is not loaded.
func LookCNAT(ctx context.Context, c link.Caller) (CNAT, error) {
	results, err := c.Do(ctx, []api.Message{&vlib.CliInband{Cmd: cnatSessions}, &vlib.CliInband{Cmd: cnatErrors}})
	var text [2]string
	for i := range text {
		if err == nil {
			err = results[i].Err
		}
		if err != nil {
			return CNAT{}, fmt.Errorf("read CNAT sessions: %w", err)
		}
		if reply, ok := results[i].Reply.(*vlib.CliInbandReply); ok {
			text[i] = reply.Reply
		}
	}
	return parseCNAT(text[0], text[1])
}

// parseCNAT reads the output of the two commands. There is a line for each thread that counted an
// error.
func parseCNAT(sessions, errors string) (CNAT, error) {
	var found CNAT
	known := false
	for line := range strings.Lines(sessions) {
		known = known || scan(strings.TrimSpace(line), "Total timestamps %d", &found.Sessions)
	}
	if !known {
		return CNAT{}, fmt.Errorf("read CNAT sessions: %w: %q", ErrNotUnderstood, shorten(sessions))
	}
	for line := range strings.Lines(errors) {
		var count uint64
		var node string
		words := strings.Join(strings.Fields(line), " ")
		if _, err := fmt.Sscan(words, &count, &node); err != nil || !strings.HasPrefix(node, "cnat-") {
			continue
		}
		switch {
		case strings.Contains(words, "no more free ports"):
			found.NoPort += count
		case strings.Contains(words, "session allocation failure"):
			found.NoSession += count
		}
	}
	return found, nil
}

// CNATHistory is the memory of DecideCNAT. The zero value is for a VPP that was never read.
type CNATHistory struct {
	looked, alarmed bool
	last            CNAT
	// refused is the time of the last look that found more dropped packets, why is the reason.
	refused time.Time
	why     string
}

// DecideCNAT returns a line for the operator when CNAT refuses connections, or may soon; "" =
// neither. The agent cannot free sessions of CNAT or raise their limit. VPP does not say how many
// sessions have a source port, so all of them count.
func DecideCNAT(now time.Time, u CNAT, h CNATHistory, cfg Config) (alarm string, next CNATHistory) {
	cfg = cfg.WithDefaults()
	switch {
	case !h.looked:
	case u.NoSession > h.last.NoSession:
		h.refused, h.why = now, "its table of sessions is full"
	case u.NoPort > h.last.NoPort:
		h.refused, h.why = now, fmt.Sprintf("the %d source ports that a NAT address has for each protocol are taken", SourcePorts)
	}
	at := cfg.AlarmAt
	if h.alarmed {
		at = cfg.CalmAt
	}
	switch {
	case recent(now, h.refused, 2*cfg.SurveyEvery):
		alarm = fmt.Sprintf("CNAT refuses connections: %s; %d sessions", h.why, u.Sessions)
	case u.Sessions*100 >= SourcePorts*uint64(at):
		alarm = fmt.Sprintf("CNAT has %d sessions, and a NAT address has %d source ports for each protocol", u.Sessions, SourcePorts)
	}
	h.looked, h.alarmed, h.last = true, alarm != "", u
	return alarm, h
}
