"""What scan and claim cost in a database that has grown, against the same work in a small one."""
