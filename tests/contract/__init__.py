"""The contract suites of the ports, run over every adapter."""
