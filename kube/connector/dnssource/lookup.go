package dnssource

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// mostAliases is the largest number of CNAME records that are followed for one name.
const mostAliases = 8

// lookup is one pass through the records of a source.
type lookup struct {
	dial    dialer
	servers []netip.AddrPort
	ttl     uint32 // seconds, the shortest of all records that were read
}

// records returns the records of a type that a name has, also through aliases; none if it has none
// or does not exist.
func (l *lookup) records(ctx context.Context, name string, t dnsmessage.Type) ([]dnsmessage.Resource, error) {
	for aliases := 0; ; {
		q := dnsmessage.Question{Type: t, Class: dnsmessage.ClassINET}
		var err error
		if q.Name, err = dnsmessage.NewName(name + "."); err != nil {
			return nil, fmt.Errorf("look up %.80q: %w", name, err)
		}
		m, err := l.dial.ask(ctx, l.servers, q)
		if err != nil {
			return nil, err
		}
		begin := aliases
		for {
			found, next := l.owned(m.answers, name, t)
			if len(found) > 0 {
				return found, nil
			}
			if next == "" {
				break
			}
			if aliases++; aliases > mostAliases {
				return nil, fmt.Errorf("look up %s: more than %d aliases", q.Name, mostAliases)
			}
			name = next
		}
		// The answer has an alias without the records of its target, so the target needs a query of
		// its own.
		if aliases == begin || !m.exists || m.negative {
			l.remember(m.ttl)
			return nil, nil
		}
	}
}

// owned returns the records of a type that a name has. If there are none, it returns the target of
// its alias.
func (l *lookup) owned(answers []dnsmessage.Resource, name string, t dnsmessage.Type) (found []dnsmessage.Resource, alias string) {
	for _, r := range answers {
		if r.Header.Class != dnsmessage.ClassINET || text(r.Header.Name) != name {
			continue
		}
		if r.Header.Type == t {
			found = append(found, r)
			l.remember(r.Header.TTL)
		} else if body, is := r.Body.(*dnsmessage.CNAMEResource); is && len(found) == 0 {
			alias = text(body.CNAME)
			l.remember(r.Header.TTL)
		}
	}
	return found, alias
}

// remember keeps the TTL if it is the shortest.
func (l *lookup) remember(ttl uint32) { l.ttl = min(l.ttl, ttl) }

// text returns a name in the form of Options: lower case, without the dot at the end.
func text(n dnsmessage.Name) string { return strings.ToLower(strings.TrimSuffix(n.String(), ".")) }
