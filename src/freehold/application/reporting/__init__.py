"""The daily report, step by step: windows close, facts freeze, mails leave."""
