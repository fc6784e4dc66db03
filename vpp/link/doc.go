// Package link talks to VPP.
package link
