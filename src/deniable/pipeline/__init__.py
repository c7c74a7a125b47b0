"""Plan, read, learn, generate, certify, hand over: the order of a run."""
