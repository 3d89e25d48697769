"""The JSON Schema of study.yaml for editors, put together from the model, the scales, the quality rules and the platforms."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from dialometer.design.ready_questions import PARTS, READY
from dialometer.model.study import StudySpec
from dialometer.quality import RULES
from dialometer.recruit.platforms import PLATFORMS
from dialometer.registry import Registry
from dialometer.scales import SCALES

SCHEMA_ID = "urn:dialometer:study:1"


def study_schema() -> dict[str, Any]:
    """What a study file may hold. Bare level names of factors, names of ready questions and a single
    direction without a list are allowed, as in the loader."""
    schema = StudySpec.model_json_schema()
    definitions = schema["$defs"]
    schema["properties"]["scales"]["additionalProperties"] = _one_of(SCALES, "type", definitions)
    schema["properties"]["quality"]["items"] = _one_of(RULES, "rule", definitions)
    for part in PARTS:
        questions = schema["properties"][part]
        questions["items"] = {"anyOf": [questions["items"], {"type": "string", "enum": list(READY)}]}
    levels = definitions["Factor"]["properties"]["levels"]
    levels["items"] = {"anyOf": [levels["items"], {"type": "string"}, {"type": "number"}]}
    expected = definitions["Comparison"]["properties"]["expected"]
    expected["anyOf"] = [{"type": "string"}, {"type": expected.pop("type"), "items": expected.pop("items")}]
    rate = definitions["Design"]["properties"]["people_rate"]
    rate["anyOf"] = [{"$ref": rate.pop("$ref")}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]
    assignment = definitions["Design"]["properties"]["assignment"]
    rules = definitions["Assignment"]["properties"]["rule"]["enum"]
    assignment["anyOf"] = [{"$ref": assignment.pop("$ref")}, {"type": "string", "enum": rules}]
    for key, change in definitions["Change"]["properties"].items():
        change["description"] = definitions["Presentation"]["properties"][key]["description"]
    names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    definitions["Analysis"]["properties"]["judges"]["anyOf"] += [{"type": "string"}, names]
    definitions["Recruitment"]["properties"]["platform"]["enum"] = PLATFORMS.names()
    for unused in ("Scale", "QualityRule"):
        definitions.pop(unused, None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "title": "dialometer study file",
    }


def _one_of(registry: Registry[Any], key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A choice between the registered parts; each is told by the constant in ``key``."""
    choices = []
    for name in registry.names():
        part: type[BaseModel] = registry.get(name)
        schema = part.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        schema["required"] = sorted({key, *schema.get("required", [])})
        definitions[part.__name__] = schema
        choices.append({"$ref": f"#/$defs/{part.__name__}"})
    return {"oneOf": choices}
