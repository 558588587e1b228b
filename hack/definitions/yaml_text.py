"""Readable YAML: folded texts, and short lists on one line."""

import sys
import textwrap
from typing import Any

import yaml

WIDTH = 120
_LIST_WIDTH = 80


class _Dumper(yaml.SafeDumper):
    # Signatures are PyYAML's.
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Indent lists too."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        """Write repeated objects in full."""
        return True

    def choose_scalar_style(self) -> str:
        """Fold a text that is too long for its line, and prefer the quotes that need no escapes."""
        text, style = str(self.event.value), str(super().choose_scalar_style())
        if self.flow_level or self.simple_key_context:
            return style
        if " " in text and self.column + len(text) + len(" ''") > WIDTH:
            return ">"
        return '"' if style == "'" and "'" in text and not {'"', "\\"} & set(text) else style

    def write_folded(self, text: str) -> None:
        """Fold before the width; PyYAML folds after it."""
        self.write_indicator(">-", need_whitespace=True)
        for line in textwrap.wrap(text, WIDTH - self.indent, break_long_words=False, break_on_hyphens=False):
            self.write_indent()
            self.write_indicator(line, need_whitespace=False)


def _list(dumper: _Dumper, values: list[Any]) -> yaml.Node:
    short = not any(isinstance(value, dict | list) for value in values) and len(str(values)) < _LIST_WIDTH
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=short)


_Dumper.add_representer(list, _list)


def written(document: dict[str, Any]) -> str:
    """Return a document as text."""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=sys.maxsize, allow_unicode=True))
