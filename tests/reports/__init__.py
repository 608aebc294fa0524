"""The daily report."""
