package nat44

// backendsPerMessage is how many backends of a new row take VPP about as long as a message about
// one backend.
const backendsPerMessage = 32

// Cost returns about how many messages about one backend keep VPP as busy as the operations of one
// row do: a row that is added or deleted is one message, whose time grows with its backends. To
// delete a row takes VPP as long as to delete its entries one by one: it walks through all sessions
// for each.
func Cost(ops []Op) (messages int) {
	for _, op := range ops {
		messages++
		switch op.Verb {
		case AddRow:
			messages += len(op.Row.Locals) / backendsPerMessage
		case DelRow:
			messages += len(op.Row.Entries())
		}
	}
	return messages
}

// Part returns the first operations of DiffRow, at most so many. The rest can follow later, because
// the row is sound after each local that is added or deleted. A part also ends before an operation
// that has to wait for VPP's answers. The two operations that replace a row stay together.
func Part(ops []Op, most int) []Op {
	for i, op := range ops {
		if op.Verb == DelRow {
			break
		}
		if i == most || i > 0 && op.waits {
			return ops[:i]
		}
	}
	return ops
}
