"""The pure core: plain functions over frozen values, without I/O, clock or randomness."""
