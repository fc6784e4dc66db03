// Package api is the contract between the agent and its clients: the JSON of the resources under
// /api/v1/, the errors with an HTTP status, and Backend, which answers them. Package api/server
// serves a Backend, package cli asks it. The web page, traces and archives of sysdumps read a
// Backend, too.
//
// A resource is described once, by its struct. Field names and values are a stable interface. A
// test makes openapi.json from the types and their comments, and the tag `column:"TITLE"` makes a
// field a column of the tables of commands and of the page. The package has no state and starts
// nothing.
package api
