// Package look has the commands that query one running agent, or change something in it: get,
// explain, actors, events, diff, trace, resync, external. Query is the common part of queries: the
// agent, the format of the output, and whether to repeat. Control is the common part of changes.
//
// The table of an answer is a pure function of it. A command ends with its context.
package look
