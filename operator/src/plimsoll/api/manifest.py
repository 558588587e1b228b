"""Reads YAML as JSON values; what YAML silently accepts, such as a duplicate key or `010` for eight, is an error."""

import re
from typing import Any

import yaml
from pydantic import JsonValue
from yaml.events import Event
from yaml.nodes import MappingNode, Node, ScalarNode

from plimsoll.api.errors import Problem, SpecError

MAX_TEXT_BYTES = 256 * 2**10  # far above any real manifest; a larger one takes seconds to read
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_FRACTION = re.compile(r"[-+]?[0-9]{0,19}\.[0-9]{0,19}([eE][-+][0-9]{1,2})?")
_TAGS = "tag:yaml.org,2002:"
_NO_TAG = (None, "!", f"{_TAGS}str")


class _Loader(yaml.SafeLoader):
    """Accepts only values that JSON can represent."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Event = self.peek_event()  # type: ignore[no-untyped-call] # not in the stubs
        tag = getattr(event, "tag", None)
        if tag not in _NO_TAG:
            raise _error(f"tag {tag} is not supported; remove it", event.start_mark)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[str, Node]) -> MappingNode:
        """Check the keys before merge keys (`<<`), which may be overridden, are resolved."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.tag == f"{_TAGS}merge":
                continue
            if not isinstance(key, ScalarNode) or key.tag != f"{_TAGS}str":
                shown = f"key {key.value}" if isinstance(key, ScalarNode) else "a key"
                raise _error(f"{shown} is not text; put it in quotes", key.start_mark)
            if key.value in seen:
                raise _error(f"key {key.value} is duplicate; remove one", key.start_mark)
            seen.add(key.value)
        return node

    def construct_whole(self, node: ScalarNode) -> int:
        return int(_checked(node, _WHOLE))

    def construct_text(self, node: ScalarNode) -> str:
        """Combine surrogate pairs, which JSON escapes separately."""
        text = str(self.construct_scalar(node))
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise _error("has an unpaired surrogate; remove it", node.start_mark) from None

    def construct_fraction(self, node: ScalarNode) -> float:
        return float(_checked(node, _FRACTION))


def _checked(node: ScalarNode, form: re.Pattern[str]) -> str:
    text = str(node.value)
    if not form.fullmatch(text):
        remedy = "is not a plain decimal number; write it as one, or put it in quotes if it is text"
        raise _error(f"{text} {remedy}", node.start_mark)
    return text


_Loader.add_constructor(f"{_TAGS}int", _Loader.construct_whole)
_Loader.add_constructor(f"{_TAGS}str", _Loader.construct_text)
_Loader.add_constructor(f"{_TAGS}float", _Loader.construct_fraction)
# A date is text, as in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAGS}timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def read_manifest(text: str) -> JsonValue:
    """Return the document of a YAML or JSON text; None if it is empty, SpecError if it is not one document."""
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise _error(f"is larger than {MAX_TEXT_BYTES // 2**10} KiB; is it the right file?")
    try:
        nodes = [node for node in yaml.compose_all(text, _Loader) if node.tag != f"{_TAGS}null"]
        if len(nodes) > 1:
            raise _error("is a second document; write each document to its own file", nodes[1].start_mark)
        document: JsonValue = _Loader("").construct_document(nodes[0]) if nodes else None
    except yaml.MarkedYAMLError as error:
        raise _error(f"is not YAML: {error.problem or error.context}", error.problem_mark) from error
    except yaml.YAMLError as error:
        reason = str(error).partition("\n")[0]
        raise _error(f"is not YAML: {reason}") from error
    except RecursionError:
        raise _error("is nested too deeply; is it the right file?") from None
    return document


def _error(remedy: str, mark: Any = None) -> SpecError:  # noqa: ANN401 - of either of two parsers
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return SpecError([Problem(field="", remedy=where + remedy)])
