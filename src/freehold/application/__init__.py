"""All control flow: the steps of scanning, releasing, sweeping and reviewing, over ports."""
