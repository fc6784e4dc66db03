package dnssource

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// message is the content of a usable answer.
type message struct {
	exists   bool // the name at the end of the chain exists
	answers  []dnsmessage.Resource
	negative bool   // there is an SOA record: missing records do not exist
	ttl      uint32 // seconds for which the SOA record allows to remember this
}

// decode reads an answer. mine says that it answers this question; otherwise the right answer may
// still come. The error says why the answer is not usable.
func decode(answer []byte, id uint16, q dnsmessage.Question) (m message, mine bool, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(answer)
	if err != nil {
		return m, false, fmt.Errorf("decode the answer: %w", err)
	}
	if h.ID != id || !h.Response || h.OpCode != 0 {
		return m, false, errors.New("the answer belongs to another query")
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Type != q.Type || questions[0].Class != q.Class ||
		!strings.EqualFold(questions[0].Name.String(), q.Name.String()) {
		return m, false, errors.New("the answer belongs to another question")
	}
	switch {
	case h.Truncated:
		return m, true, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError:
		return m, true, fmt.Errorf("the server answers %s", strings.TrimPrefix(h.RCode.String(), "RCode"))
	}
	m.exists = h.RCode == dnsmessage.RCodeSuccess
	if m.answers, err = p.AllAnswers(); err != nil {
		return m, true, fmt.Errorf("decode the answer: %w", err)
	}
	authorities, err := p.AllAuthorities()
	if err != nil {
		return m, true, fmt.Errorf("decode the answer: %w", err)
	}
	for _, r := range authorities {
		if soa, is := r.Body.(*dnsmessage.SOAResource); is {
			m.negative, m.ttl = true, min(r.Header.TTL, soa.MinTTL)
		}
	}
	if len(m.answers) == 0 && !h.Authoritative && !h.RecursionAvailable {
		return m, true, errors.New("the server does not know the name and asks no other server")
	}
	return m, true, nil
}
