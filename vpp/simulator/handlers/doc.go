// Package handlers executes the requests of the binary API on the model: one file for each message
// family, which registers its handlers in New. That is where a new family is added.
//
// The messages of the API connection itself (memclnt) are in package simulator, because they change
// connections and not the model.
package handlers
