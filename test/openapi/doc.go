// Package openapi checks the description of the agent's API with a library of others.
package openapi
