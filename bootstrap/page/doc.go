// Package page is the web page of the agent: documents that the server renders, with a style and a
// script, embedded. They show the data of the JSON API and can change nothing, because their server
// is read-only.
//
// Handler is Config.Page of package api. It asks its Source for each document and keeps nothing.
// The script only asks for the document again when the journal has grown. A stream of server-sent
// events tells it so. Without the script the documents are the same.
//
// Cluster is the page of all nodes that `troupe status --serve` serves.
package page
