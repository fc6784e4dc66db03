// Package page is the web page of the agent: documents that the server renders, with a style and a
// script, embedded. They show what the JSON API says, and can change nothing: the server they come
// from is read-only.
//
// Handler is Config.Page of package api. It asks its Source for each document and keeps nothing.
// The script only asks for the document again when the journal has grown, which it learns from a
// stream of server-sent events; without it the documents are the same.
package page
