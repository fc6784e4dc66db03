// Package command carries out commands: transactions of steps that are all carried out, or rolled
// back in the reverse order, with an answer that comes exactly once.
//
// A Queue and a Transaction belong to the actor that embeds them and neither wait nor do I/O: a
// step that takes time is begun by Step.Do and its result reported with Queue.Finish.
// Queue.Interrupt in the Stop of the actor answers what is left.
package command
