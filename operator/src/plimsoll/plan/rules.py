"""CEL rules for workloads and runs: the checks of `refusals`, for the API server.

Rules about a tool's needs follow from its target; other rules of a tool are declared by its parameters.
"""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.api.line import Vary
from plimsoll.api.model import Rule
from plimsoll.tools.base import AnyTool
from plimsoll.tools.target import TargetKind

NO_USE_OF_SERVERS = (
    "has no effect, because no workload has a tool whose clients connect to servers; remove it, or add such a workload"
)


def workload_rules(tools: Mapping[str, AnyTool]) -> tuple[Rule, ...]:
    """Return the rules for a workload, which has exactly one of these tools."""
    present = ", ".join(f"has(self.{key})" for key in tools)
    one_tool = Rule(
        rule=f"[{present}].filter(present, present).size() == 1",
        message=(
            f"must have exactly one tool: {_listed(tuple(tools), 'or')}; write `{next(iter(tools))}: {{}}` for its "
            "defaults"
        ),
    )
    return (one_tool, *_varies(tools), *(rule for tool in tools.values() for rule in tool.parameters.workload_rules))


def cannot_vary(tools: Mapping[str, AnyTool], vary: Vary) -> str:
    """Return what to do if a workload's tool cannot vary its load so."""
    able = [key for key, tool in tools.items() if vary in tool.parameters.load_fields]
    return f"applies only to {_listed(able, 'and')}; use it, or remove line"


def _varies(tools: Mapping[str, AnyTool]) -> Iterator[Rule]:
    """Yield what a search for the line can vary."""
    for vary in Vary:
        able = [f"has(self.{key})" for key, tool in tools.items() if vary in tool.parameters.load_fields]
        if able:
            yield Rule(
                rule=f"!has(self.line) || self.line.vary != '{vary}' || {' || '.join(able)}",
                message=cannot_vary(tools, vary),
                field_path=".line.vary",
            )


def run_rules(tools: Mapping[str, AnyTool]) -> tuple[Rule, ...]:
    """Return the rules for a specification whose workloads have these tools."""
    peers = [key for key, tool in tools.items() if tool.target is TargetKind.PEER]
    return (
        *_needs_volume(tools),
        _needs_ceph(tools),
        _needs_prefill(tools),
        Rule(rule=f"!has(self.servers) || {_some_workload(peers)}", message=NO_USE_OF_SERVERS, field_path=".servers"),
        *_contested_space(tools),
        *(rule for tool in tools.values() for rule in tool.parameters.run_rules),
    )


def _needs_volume(tools: Mapping[str, AnyTool]) -> tuple[Rule, Rule]:
    keys = [key for key, tool in tools.items() if tool.target.is_data_set]
    absent = f"!{_some_workload(keys)}"
    because = f"because {_listed(keys, 'and')} run on a volume"
    return (
        Rule(
            rule=f"has(self.storage) || {absent}",
            message=f"must be set with a volume, {because}",
            reason="FieldValueRequired",
            field_path=".storage",
        ),
        Rule(
            rule=f"!has(self.storage) || has(self.storage.volume) || {absent}",
            message=f"must be set, {because}",
            reason="FieldValueRequired",
            field_path=".storage.volume",
        ),
    )


def _needs_ceph(tools: Mapping[str, AnyTool]) -> Rule:
    keys = [key for key, tool in tools.items() if tool.target.is_of_ceph]
    return Rule(
        rule=f"has(self.storage) && (has(self.storage.rook) || has(self.storage.ceph)) || !{_some_workload(keys)}",
        message=f"must have rook or ceph, because {_listed(keys, 'and')} connect to Ceph directly; name the cluster",
        field_path=".storage",
    )


def _needs_prefill(tools: Mapping[str, AnyTool]) -> Rule:
    reading = " || ".join(
        f"has(w.{key}) && {tool.parameters.reads_when}"
        for key, tool in tools.items()
        if tool.target.is_data_set and tool.parameters.reads_when
    )
    return Rule(
        rule=f"self.prepare.prefill || !self.workloads.exists(w, {reading})",
        message=(
            "must be true, because a workload would read unwritten extents, which are answered without access to the "
            "storage; set it to true, or leave out the workloads that read"
        ),
        field_path=".prepare.prefill",
    )


def _contested_space(tools: Mapping[str, AnyTool]) -> Iterator[Rule]:
    own = [key for key, tool in tools.items() if tool.own_files]
    others = [key for key, tool in tools.items() if tool.target.is_data_set and not tool.own_files]
    if not own:
        return
    yield Rule(
        rule=f"!{_some_workload(own)} || !{_some_workload(others)}",
        message=(
            f"cannot have both {_listed(own, 'or')} and {_listed(others, 'or')}, because the former uses the space of "
            "the data set; split the run"
        ),
        field_path=".workloads",
    )
    yield Rule(
        rule=f"!has(self.prepare.precondition) || !{_some_workload(own)}",
        message=f"must be absent, because {_listed(own, 'and')} writes files of its own; remove it",
        field_path=".prepare.precondition",
    )


def _some_workload(keys: Sequence[str]) -> str:
    if not keys:
        return "false"
    return f"self.workloads.exists(w, {' || '.join(f'has(w.{key})' for key in keys)})"


def _listed(words: Sequence[str], conjunction: str) -> str:
    *others, last = words
    return f"{', '.join(others)} {conjunction} {last}" if others else last
