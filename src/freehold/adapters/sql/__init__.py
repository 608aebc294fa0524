"""The ledger and the customer's table in SQL, for SQLite and PostgreSQL."""
