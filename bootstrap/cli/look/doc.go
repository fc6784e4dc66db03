// Package look has the commands that query one running agent, or change something in it: get,
// explain, actors, events, diff, trace, resync, external. Query is their common part: which agent
// is asked, in what format it is printed, and whether to repeat. Control is that of changes.
//
// Tables of an answer are pure functions of it. A command ends with its context.
package look
