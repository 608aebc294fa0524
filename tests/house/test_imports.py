"""No module imports itself by way of others; import-linter checks the direction of the layers."""

from __future__ import annotations

import graphlib

import grimp


def test_there_are_no_import_cycles() -> None:
    graph = grimp.build_graph("freehold", cache_dir=None)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    # Raises CycleError, which names the modules of the cycle.
    graphlib.TopologicalSorter(modules).prepare()
