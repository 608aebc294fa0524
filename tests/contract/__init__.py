"""The contract suites of the ports, run over every adapter."""

import pytest

pytest.register_assert_rewrite("tests.contract.ward")
