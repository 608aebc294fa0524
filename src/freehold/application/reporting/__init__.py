"""The daily report: closing windows, freezing facts, asking for summaries, mailing, sending."""
