"""What the operator does next for a suite: when a round starts, which run comes next, and how a round ends."""
