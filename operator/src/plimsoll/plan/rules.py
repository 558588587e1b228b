"""Rules for workloads and runs that follow from what their tools need; other rules are those of tools' parameters."""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.api.line import Vary
from plimsoll.api.model import Rule
from plimsoll.tools.base import AnyTool, ExpandedRun
from plimsoll.tools.target import TargetKind


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
    return (one_tool, *_varies(tools), *(rule for tool in tools.values() for rule in rules_of_workload(tool)))


def rules_of_workload(tool: AnyTool) -> Iterator[Rule]:
    """Yield the rules for a workload with this tool, which ask about a `WorkloadPoint`."""
    if tool.executor.alone:
        yield Rule(
            rule=f"!has(self.{tool.key}) || !has(self.clients) || self.clients == [1]",
            holds=lambda point: point.workload.clients in {None, (1,)},
            message=f"does not apply to {tool.key}, which one client runs for all; leave it out",
            field_path=".clients",
        )
    yield from tool.parameters.workload_rules


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
    """Return the rules for a specification whose workloads have these tools, which ask about an `ExpandedRun`."""
    peers = [key for key, tool in tools.items() if tool.target is TargetKind.PEER]
    return (
        *_needs_volume(tools),
        _needs_ceph(tools),
        _needs_prefill(tools),
        Rule(
            rule=f"!has(self.servers) || {_some_workload(peers)}",
            holds=lambda run: run.spec.servers is None or run.points_of(*peers),
            message="has no effect, because no workload has a tool whose clients connect to servers; remove it, or add "
            "such a workload",
            field_path=".servers",
        ),
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
            holds=lambda run: run.spec.storage is not None or not run.points_of(*keys),
            message=f"must be set with a volume, {because}",
            reason="FieldValueRequired",
            field_path=".storage",
        ),
        Rule(
            rule=f"!has(self.storage) || has(self.storage.volume) || {absent}",
            holds=lambda run: run.spec.storage is None or run.volume is not None or not run.points_of(*keys),
            message=f"must be set, {because}",
            reason="FieldValueRequired",
            field_path=".storage.volume",
        ),
    )


def _needs_ceph(tools: Mapping[str, AnyTool]) -> Rule:
    keys = [key for key, tool in tools.items() if tool.target.is_of_ceph]
    return Rule(
        rule=f"has(self.storage) && (has(self.storage.rook) || has(self.storage.ceph)) || !{_some_workload(keys)}",
        holds=lambda run: (
            (run.spec.storage is not None and (run.spec.storage.rook is not None or run.spec.storage.ceph is not None))
            or not run.points_of(*keys)
        ),
        message=f"must have rook or ceph, because {_listed(keys, 'and')} connect to Ceph directly; name the cluster",
        field_path=".storage",
    )


def _needs_prefill(tools: Mapping[str, AnyTool]) -> Rule:
    keys = [key for key, tool in tools.items() if tool.target.is_data_set and tool.parameters.reads_when]
    reading = " || ".join(f"has(w.{key}) && {tools[key].parameters.reads_when}" for key in keys)
    message = (
        "must be true, because {} would read unwritten extents, which are answered without access to the storage; set "
        "it to true, or leave out the workloads that read"
    )

    def readers(run: ExpandedRun) -> list[str]:
        names = (point.workload.name for point in run.points_of(*keys) if point.parameters.reads_data)
        return list(dict.fromkeys(names))

    return Rule(
        rule=f"self.prepare.prefill || !self.workloads.exists(w, {reading})",
        holds=lambda run: run.spec.prepare.prefill or not readers(run),
        message=message.format("a workload"),
        remedy=lambda run: message.format(", ".join(readers(run))),
        field_path=".prepare.prefill",
    )


def _contested_space(tools: Mapping[str, AnyTool]) -> Iterator[Rule]:
    with_files = [key for key, tool in tools.items() if tool.own_files]
    others = [key for key, tool in tools.items() if tool.target.is_data_set and not tool.own_files]
    if not with_files:
        return
    yield Rule(
        rule=f"!{_some_workload(with_files)} || !{_some_workload(others)}",
        holds=lambda run: not run.points_of(*with_files) or not run.points_of(*others),
        message=(
            f"cannot have both {_listed(with_files, 'or')} and {_listed(others, 'or')}, because the former uses the "
            "space of the data set; split the run"
        ),
        field_path=".workloads",
    )
    yield Rule(
        rule=f"!has(self.prepare.precondition) || !{_some_workload(with_files)}",
        holds=lambda run: run.spec.prepare.precondition is None or not run.points_of(*with_files),
        message=f"must be absent, because {_listed(with_files, 'or')} writes files of its own; remove it",
        field_path=".prepare.precondition",
    )


def _some_workload(keys: Sequence[str]) -> str:
    if not keys:
        return "false"
    return f"self.workloads.exists(w, {' || '.join(f'has(w.{key})' for key in keys)})"


def _listed(words: Sequence[str], conjunction: str) -> str:
    *others, last = words
    return f"{', '.join(others)} {conjunction} {last}" if others else last
