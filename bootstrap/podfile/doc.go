// Package podfile stores which interface of VPP is that of which pod, as commands have told the
// agent, in a file.
//
// Package agent makes a File; the interfaces actor loads it when it starts, and saves it before it
// answers a command. A File holds nothing open, so it needs no shutdown.
package podfile
