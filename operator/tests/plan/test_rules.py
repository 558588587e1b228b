"""CEL rules that follow from the tools."""

from plimsoll.plan.refusals import run_rules, workload_rules
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.bonnie import Bonnie
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.rados_bench import RadosBench
from plimsoll.tools.registry import TOOLS

BONNIE = Bonnie()
FIO = Fio()
RADOS_BENCH = RadosBench()


def test_a_workload_has_one_of_the_tools() -> None:
    rule = workload_rules({"fio": FIO, "radosBench": RADOS_BENCH})[0]
    assert rule.rule == "[has(self.fio), has(self.radosBench)].filter(present, present).size() == 1"
    assert rule.message == "must have exactly one tool: fio or radosBench; write `fio: {}` for its defaults"


def test_tools_need_their_targets() -> None:
    rules = {rule.field_path: rule.rule for rule in run_rules({"fio": FIO, "radosBench": RADOS_BENCH})}
    assert "exists(w, has(w.fio))" in rules[".storage.volume"]
    assert "exists(w, has(w.radosBench))" in rules[".storage"]


def test_rules_of_tools_are_among_those_of_a_run_and_of_a_workload() -> None:
    for tool in TOOLS.values():
        assert set(tool.parameters.run_rules) <= set(run_rules(TOOLS))
        assert set(tool.parameters.workload_rules) <= set(workload_rules(TOOLS))


def test_a_tool_that_reads_the_data_set_declares_when() -> None:
    for key, tool in TOOLS.items():
        shares_data = tool.target.is_data_set and not tool.own_files
        if shares_data and tool.parameters.reads_data is not ToolParameters.reads_data:
            assert "self." in tool.parameters.reads_when, key


def test_a_tool_with_files_of_its_own_shares_no_run_with_those_on_the_data_set() -> None:
    ceph = {"radosBench": RADOS_BENCH}
    rules = run_rules({"fio": FIO, "bonnie": BONNIE, **ceph})
    (precondition,) = (rule for rule in rules if rule.field_path == ".prepare.precondition")
    assert precondition.rule.endswith("!self.workloads.exists(w, has(w.bonnie))")
    (both,) = (rule for rule in rules if "cannot have both bonnie and fio" in rule.message)
    assert (both.rule, both.field_path) == (
        "!self.workloads.exists(w, has(w.bonnie)) || !self.workloads.exists(w, has(w.fio))",
        ".workloads",
    )
    files = run_rules({"bonnie": BONNIE, "other": BONNIE, "fio": FIO, **ceph})
    (overwritten,) = (rule for rule in files if rule.field_path == ".prepare.precondition")
    assert overwritten.message == "must be absent, because bonnie or other writes files of its own; remove it"
    assert ".prepare.precondition" not in {rule.field_path for rule in run_rules({"fio": FIO, **ceph})}
