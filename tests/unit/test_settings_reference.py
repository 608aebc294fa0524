"""The reference page and the JSON Schema say what the program does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from freehold.settings import load_settings
from freehold.settings.schema import json_schema
from freehold.settings.shape_file import FileShape
from tests.unit.settings_page import INTRO, PAGE, names, page
from tests.unit.test_settings import LEAST


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.unit.settings_page"


def test_every_setting_has_its_heading(tmp_path: Path) -> None:
    headings = re.findall(r"^### (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [name for name in names() if "." in name]
    (tmp_path / "freehold.toml").write_text(LEAST, encoding="utf-8")
    origins = load_settings(tmp_path / "freehold.toml", {}).origins
    assert {name.replace("rules.cart.", "rules.") for name in origins} <= set(headings)


def test_the_page_s_example_is_right() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", INTRO, re.DOTALL)
    assert FileShape.model_validate(tomllib.loads(example)).rules


def test_the_schema_knows_no_null_and_every_key() -> None:
    schema = json_schema()
    assert '"type": "null"' not in json.dumps(schema)
    assert schema["additionalProperties"] is False
    for table in schema["$defs"].values():
        assert table["additionalProperties"] is False
