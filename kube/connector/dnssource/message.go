package dnssource

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// message is the content of a usable answer.
type message struct {
	exists   bool                  // the name at the end of the chain exists
	answers  []dnsmessage.Resource // A, AAAA, SRV and CNAME records
	negative bool                  // there is an SOA record: missing records do not exist
	ttl      uint32                // seconds for which the SOA record allows to remember this
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
	if err := m.read(&p); err != nil {
		return m, true, fmt.Errorf("decode the answer: %w", err)
	}
	if len(m.answers) == 0 && !h.Authoritative && !h.RecursionAvailable {
		return m, true, errors.New("the server does not know the name and asks no other server")
	}
	return m, true, nil
}

// read reads the records of the answer and authority sections.
func (m *message) read(p *dnsmessage.Parser) error {
	for {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return err
		}
		switch h.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeSRV, dnsmessage.TypeCNAME:
			r, err := p.Answer()
			if err != nil {
				return err
			}
			m.answers = append(m.answers, r)
		default:
			if err := p.SkipAnswer(); err != nil {
				return err
			}
		}
	}
	for {
		h, err := p.AuthorityHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Type != dnsmessage.TypeSOA {
			if err := p.SkipAuthority(); err != nil {
				return err
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return err
		}
		m.negative, m.ttl = true, min(h.TTL, soa.MinTTL)
	}
}
