package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Tree reads the actors of the system that the function returns. The function exists because a
// server listens before its system exists.
type Tree func() *runtime.System

// Actors satisfies api.Reader. It reads the mailboxes, in the order of their paths, and sends no
// message, so that it works while actors hang.
func (t Tree) Actors(context.Context) ([]api.Actor, error) {
	states := t().Snapshot()
	out := make([]api.Actor, len(states))
	now := time.Now()
	for i := range states {
		out[i] = actorOf(&states[i], now)
	}
	return out, nil
}

// Actor satisfies api.Reader.
func (t Tree) Actor(_ context.Context, path string) (*api.Actor, error) {
	state, ok := t().Actor(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	actor := actorOf(&state, time.Now())
	return &actor, nil
}

// actorOf converts the state of a mailbox. Pending includes system messages, because they also keep
// an actor busy.
func actorOf(s *runtime.ActorState, now time.Time) api.Actor {
	return api.Actor{
		Path: s.Path, Kind: s.Kind, State: string(s.State), Incarnation: s.Incarnation, Pending: uint64(s.User + s.System), Received: s.Posted,
		Coalesced: s.Coalesced, Restarts: s.Restarts, Failures: s.Panics, BusySeconds: s.Busy.Seconds(), LastMessage: s.Last,
		Since: now.Add(-s.Uptime).Truncate(time.Millisecond), LastFailure: s.LastFailure, MostPending: uint64(s.HighWater),
		OldestSeconds: s.OldestAge.Seconds(), Handling: s.Current, HandlingSeconds: s.CurrentFor.Seconds(), Discarded: s.Discarded,
		Strategy: s.Strategy, Budget: s.Budget, BudgetLeft: s.BudgetLeft,
	}
}

// Mailbox satisfies api.Reader.
func (t Tree) Mailbox(_ context.Context, path string) (*api.Mailbox, error) {
	box, err := t.Box(path)
	if err != nil {
		return nil, err
	}
	waiting := box.Pending()
	out := &api.Mailbox{Path: path, Held: box.State().Held, Pending: len(waiting), Messages: make([]api.Waiting, min(len(waiting), api.MaxLimit))}
	for i, m := range waiting[:len(out.Messages)] {
		out.Messages[i] = api.Waiting{Type: m.Type, Key: m.Key, AgeSeconds: m.Age.Seconds(), Sender: m.Sender}
		if i < mostBodies {
			out.Messages[i].Body = body(m.Body)
		}
	}
	return out, nil
}

// Limits of the shown messages of a mailbox: the number of bodies, and their longest size.
const (
	mostBodies  = 100
	longestBody = 4 << 10
)

// body encodes a message; nil = it is not shown.
func body(m proto.Message) json.RawMessage {
	if m == nil || proto.Size(m) > longestBody {
		return nil
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil // the type is shown
	}
	return text
}

// Traffic satisfies api.Reader.
func (t Tree) Traffic(ctx context.Context, path string) (*api.Traffic, error) {
	actor, err := t.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	known := t().Traffic(actor.Kind)
	out := &api.Traffic{Kind: actor.Kind, Messages: []api.MessageTraffic{}, From: kinds(known.From), To: kinds(known.To)}
	for _, m := range known.Messages {
		out.Messages = append(out.Messages, api.MessageTraffic{Type: m.Type, Count: m.Count, P50Seconds: m.P50.Seconds(), P99Seconds: m.P99.Seconds()})
	}
	return out, nil
}

func kinds(all []runtime.KindTraffic) []api.KindTraffic {
	out := make([]api.KindTraffic, len(all))
	for i, k := range all {
		out[i] = api.KindTraffic{Kind: k.Kind, Count: k.Count}
	}
	return out
}

// DeadLetters satisfies api.Reader.
func (t Tree) DeadLetters(context.Context) (*api.DeadLetters, error) {
	count, latest := t().DeadLetters()
	out := &api.DeadLetters{Count: count, Items: []api.DeadLetter{}}
	for _, l := range slices.Backward(latest) {
		out.Items = append(out.Items, api.DeadLetter{Time: l.At, To: l.To, Sender: l.Sender, Type: l.Type, Reason: l.Reason})
	}
	return out, nil
}

// Failures satisfies api.Reader.
func (t Tree) Failures(_ context.Context, path string) ([]api.Failure, error) {
	box, err := t.Box(path)
	if err != nil {
		return nil, err
	}
	failures := box.Failures()
	out := make([]api.Failure, len(failures))
	for i, f := range failures {
		out[i] = api.Failure{
			Time: f.At, Incarnation: f.Incarnation, Reason: f.Reason, Message: f.Message, Decision: f.Decision, Stack: f.Stack,
		}
	}
	slices.SortStableFunc(out, func(a, b api.Failure) int { return b.Time.Compare(a.Time) })
	return out, nil
}

// patience is the time that an actor has to answer with its state. A slower actor hangs in a
// message, and its numbers show which one.
const patience = 300 * time.Millisecond

// State satisfies api.Reader.
func (t Tree) State(ctx context.Context, path string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := t().Inspect(ctx, path)
	if err != nil {
		return nil, NotFound(err)
	}
	return json.RawMessage(text), nil
}

// NotFound translates the runtime's error for an actor that does not exist.
func NotFound(err error) error {
	if errors.Is(err, runtime.ErrNoActor) {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
}

// Box returns the mailbox of an actor.
func (t Tree) Box(path string) (*runtime.Mailbox, error) {
	box, ok := t().Mailbox(path)
	if !ok {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	return box, nil
}

// maxChildren is the number of children of one actor in a tree, because 10,000 services would make
// it unreadable. Below counts all.
const maxChildren = 50

// tree makes trees of actors. An actor without its parent in the list is a root.
func tree(actors []api.Actor) []*api.TreeNode {
	var roots []*api.TreeNode
	known := map[string]*api.TreeNode{}
	byPath := func(a, b api.Actor) int { return strings.Compare(a.Path, b.Path) }
	if !slices.IsSortedFunc(actors, byPath) { // the actors of an agent are sorted
		actors = slices.SortedFunc(slices.Values(actors), byPath)
	}
	for i := range actors {
		a := &actors[i]
		node := &api.TreeNode{Actor: *a, Name: a.Path[strings.LastIndexByte(a.Path, '/')+1:]}
		known[a.Path] = node
		parent := known[parentOf(a.Path)]
		if parent == nil {
			roots = append(roots, node)
			continue
		}
		if len(parent.Children) < maxChildren {
			parent.Children = append(parent.Children, node)
		}
		for up := parent; up != nil; up = known[parentOf(up.Path)] {
			up.Below++
		}
	}
	return roots
}

// parentOf returns the path of the parent; "" for a root.
func parentOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	return path[:i]
}
