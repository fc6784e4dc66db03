// Package command carries out commands as transactions: their operations are all carried out, or
// rolled back in the reverse order. The answer comes exactly once.
//
// A Queue and a Transaction belong to the actor that embeds them and neither wait nor do I/O.
// Operation.Do begins an operation that takes time, and Queue.Finish reports its result.
// Queue.Interrupt in the Stop of the actor answers the remaining commands.
package command
