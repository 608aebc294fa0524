"""Where a person or a service manager enters: the command line and the service loops."""
