"""YAML as libyaml reads it: PyYAML's own reader takes seconds for a definition."""

from typing import Any

import yaml


def read_yaml(text: str) -> Any:
    """Return the one document of a text."""
    return yaml.load(text, yaml.CSafeLoader)


def read_yamls(text: str) -> list[Any]:
    """Return the documents of a text, without empty ones."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
