// Package drill decodes the file of a chaos drill, kind ChaosPlan, strictly. Every error names the
// line and the field.
//
// The fields of faults follow from the parameters of package live, which also validates the values.
package drill
