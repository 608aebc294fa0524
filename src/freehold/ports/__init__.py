"""What the application needs of the outside, as small protocols whose docstrings are the contract."""
