package files

import "errors"

// value is an object or a List somewhere in a document, YAML or JSON.
type value interface {
	// header returns apiVersion and kind. The error says that the value is no mapping, or that
	// one of the two is no string.
	header() (apiVersion, kind string, err error)
	// names returns metadata.namespace and metadata.name as far as they can be read, whatever
	// else is wrong with the value.
	names() (namespace, name string)
	// items returns the elements of the list at the key "items"; none if it is missing or null.
	items() ([]value, error)
	// json returns the value as JSON.
	json() ([]byte, error)
	// line returns the line of its first byte in its document, from 1.
	line() int
}

var (
	errNoMapping = errors.New("is not a mapping")
	errNoString  = errors.New("is not a string")
	errNoList    = errors.New("is not a list")
	errTooDeep   = errors.New("is nested too deeply")
	errTooLarge  = errors.New("is too large")
)
