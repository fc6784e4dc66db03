// Package simulated has the commands that need a simulated VPP or simulated actors: demo, simulator
// and chaos simulate. The image of the agent is built without them.
package simulated
