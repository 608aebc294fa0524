"""The `freehold` command: thin commands over the application, one exit code table for all."""

from freehold.entrypoints.cli.main import main

__all__ = ["main"]
