"""The outside: one package for each kind of thing that a port talks to."""
