"""The JSON Schema of freehold.toml, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from freehold.settings.shape_file import FileShape


class _TomlSchema(GenerateJsonSchema):
    """TOML has no null: an absent key is absent."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Leave null out."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave a default of None out."""
        written = super().default_schema(schema)
        if written.get("default", ...) is None:
            del written["default"]
        return written

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Titles that repeat the key say nothing."""
        return False


def json_schema() -> dict[str, Any]:
    """Return the schema of the whole file."""
    found = FileShape.model_json_schema(schema_generator=_TomlSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect, **found, "title": "freehold.toml"}
