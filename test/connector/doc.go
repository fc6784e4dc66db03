// Package connector tests the catalog connector as a process against a real control plane, with a token that is bound to the rules of rbac.yaml.
package connector
