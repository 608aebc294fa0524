"""Tests of Freehold."""
