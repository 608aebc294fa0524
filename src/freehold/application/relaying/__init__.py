"""The relay, step by step: events get their route, forwards are claimed, handed over and settled."""
