"""Tests through the command line, as a person or a service manager uses it."""
