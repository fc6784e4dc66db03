package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// padding makes an answer longer than a packet, so that a wrong MTU is found: in bytes.
	padding = 100_000
	// perConnection limits a connection with its answer.
	perConnection = 3 * time.Second
	// ForProgramming is how long an address may take until its first answer: the agents may not
	// have seen the service yet.
	ForProgramming = 10 * time.Second
	// betweenTries is the time from a failed first connection to the next one.
	betweenTries = 200 * time.Millisecond
	// longestAnswer is the longest line of an answer: the name of a node and a newline.
	longestAnswer = 253 + 1
)

// Talk is what became of the connections from a pod to one address.
type Talk struct {
	// To is the address, HOST:PORT.
	To string `json:"to"`
	// Answers counts complete answers by the node of the pod that answered.
	Answers map[string]int `json:"answers,omitempty"`
	// Failed counts the connections without a complete answer, and Error is the first reason.
	Failed int    `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Answer accepts connections until ctx ends, and answers each with the name of the node. It closes
// the listener.
func Answer(ctx context.Context, listener net.Listener, node string) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	answer := node + "\n" + strings.Repeat(".", padding)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection: %w", err)
		}
		all.Go(func() {
			defer func() { _ = connection.Close() }()
			_ = connection.SetDeadline(time.Now().Add(perConnection))
			_, _ = io.WriteString(connection, answer) // the other end reports what is missing
		})
	}
}

// Ask connects to each address, so many times one after the other, and to all addresses at the
// same time. Connections count from the first answer on. An address without an answer until
// patience is over has failed each time.
func Ask(ctx context.Context, addresses []string, times int, patience time.Duration) []Talk {
	talks := make([]Talk, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() { talks[i] = ask(ctx, address, times, patience) })
	}
	all.Wait()
	return talks
}

// ask is Ask for one address.
func ask(ctx context.Context, address string, times int, patience time.Duration) Talk {
	talk := Talk{To: address, Answers: map[string]int{}}
	if err := awaitAnswer(ctx, address, patience); err != nil {
		talk.Failed, talk.Error = times, err.Error()
		return talk
	}
	for range times {
		node, err := askOnce(ctx, address)
		if err == nil {
			talk.Answers[node]++
			continue
		}
		talk.Failed++
		if talk.Failed == 1 {
			talk.Error = err.Error()
		}
	}
	return talk
}

// awaitAnswer returns when an address answers; or, when patience is over, why it does not.
func awaitAnswer(ctx context.Context, address string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		_, err := askOnce(ctx, address)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(betweenTries):
		}
	}
}

// askOnce returns the node that answers.
func askOnce(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, perConnection)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(connection, padding+longestAnswer))
	if err != nil {
		return "", fmt.Errorf("after %d bytes of the answer: %w", len(answer), err)
	}
	node, rest, found := strings.Cut(string(answer), "\n")
	if !found || len(rest) != padding {
		return "", errors.New("something else than the pod answers")
	}
	return node, nil
}
