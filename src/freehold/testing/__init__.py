"""Shipped for tests: contract suites, crash points and builders."""
