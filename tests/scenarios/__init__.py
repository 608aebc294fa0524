"""How hold expiry breaks elsewhere, played against Freehold: one test for each kind."""
