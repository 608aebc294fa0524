"""Tables of real products, recreated from names and types, attached by configuration alone."""
