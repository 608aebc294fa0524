"""Tests of the code's own shape: sizes, imports, names, statements, tracked files."""
