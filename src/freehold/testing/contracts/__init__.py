"""One contract suite for each port, run over every adapter.

A suite is a plain class of test methods; a test module subclasses it and gives the fixture that its
methods ask for: `ground` for the ledger's ports (`contracts.ground`), `broker` for the queue
(`contracts.queue`), the port itself for the small ones (`contracts.system`). Each method shows one
line of the port's docstring. *Not here*: how one database does it (its own tests).
"""
