"""Samples that mypy checks: `make check` fails when a class leaves its port."""
