"""Options in Ceph's configuration database: which a run may set, how they are restored, and what OSDs should use."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.api.environment import CephOption
from plimsoll.ceph.options import (
    Change,
    OptionDescription,
    OptionKey,
    OptionRecord,
    RecordedOption,
    changes_of,
    expected_settings,
    option_differences,
    parse_option_help,
    reading_problems,
    stored_value,
    why_refused,
)
from plimsoll.ceph.watch import OptionReading
from support.goldens import rook, shown

PROFILE = "osd_mclock_profile"
KEYS = [("osd", PROFILE), ("osd/class:hdd", PROFILE), ("osd.1", PROFILE), ("osd", "osd_recovery_sleep")]
VALUES = st.sampled_from(["0.5", "1.000000", "balanced", "high_client_ops", ""])


def option(who: str, name: str = PROFILE, value: str = "high_client_ops") -> CephOption:
    return CephOption(who=who, name=name, value=value)


def described(kind: str = "str", *, choices: tuple[str, ...] = (), at_runtime: bool = True) -> OptionDescription:
    return OptionDescription(name=PROFILE, type=kind, choices=choices, changes_at_runtime=at_runtime)


def applied(database: dict[OptionKey, str], changes: list[Change]) -> dict[OptionKey, str]:
    """Return the database after changes."""
    found = dict(database)
    for key, value in changes:
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found


def test_the_description_of_an_option_is_read() -> None:
    text = {
        "name": PROFILE,
        "type": "str",
        "level": "advanced",
        "default": "balanced",
        "enum_values": ["balanced", "high_client_ops"],
        "can_update_at_runtime": True,
        "flags": ["runtime"],
    }
    found = parse_option_help(json.dumps(text))
    assert found == described(choices=("balanced", "high_client_ops"))
    assert parse_option_help(json.dumps({"name": "a", "type": "uint", "can_update_at_runtime": False})).choices == ()
    with pytest.raises(ValueError, match="can_update_at_runtime"):
        parse_option_help('{"name": "a", "type": "uint"}')


@pytest.mark.parametrize(
    ("kind", "text", "stored"),
    [
        ("str", "high_client_ops", "high_client_ops"),
        ("uint", "4", "4"),
        ("int", "-1", "-1"),
        ("secs", "60", "60"),
        ("size", "4Gi", "4294967296"),
        ("size", "4G", "4294967296"),
        ("size", "67108864", "67108864"),
        ("float", "0.5", "0.500000"),
        ("float", "1e-3", "0.001000"),
        ("bool", "true", "true"),
    ],
)
def test_values_are_recorded_as_ceph_stores_them(kind: str, text: str, stored: str) -> None:
    assert stored_value(text, kind) == stored
    assert stored_value(stored, kind) == stored


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("uint", "4K"),
        ("uint", "007"),
        ("int", "1.5"),
        ("secs", "1 minute"),
        ("size", "4 Gi"),
        ("float", "fast"),
        ("float", "inf"),
        ("bool", "1"),
        ("addr", "192.0.2.1"),
    ],
)
def test_a_value_that_ceph_might_store_otherwise_is_refused(kind: str, text: str) -> None:
    assert f"option {PROFILE} cannot be {text}: " in why_refused(option("osd", value=text), described(kind))


def test_an_option_that_needs_a_restart_is_refused() -> None:
    assert "only after a restart of the OSDs; remove it" in why_refused(option("osd"), described(at_runtime=False))
    assert why_refused(option("osd"), described()) == ""


def test_only_a_permitted_choice_is_accepted() -> None:
    choices = ("balanced", "custom")
    assert "choose one of balanced, custom" in why_refused(option("osd"), described(choices=choices))
    assert why_refused(option("osd", value="custom"), described(choices=choices)) == ""


def test_the_most_specific_option_counts() -> None:
    options = [option("osd.1", value="custom"), option("osd", value="balanced"), option("osd/class:hdd")]
    used = [expected_settings(options, osd, kind)[PROFILE] for osd, kind in ((0, "ssd"), (2, "hdd"), (1, "hdd"))]
    assert used == ["balanced", "high_client_ops", "custom"]
    assert expected_settings([option("osd/class:hdd")], 0, "ssd") == {}
    assert expected_settings([option("osd.1")], 11, "ssd") == {}


def test_what_a_real_osd_shows_is_compared() -> None:
    settings = {0: shown(rook("config-show-osd.0"))}
    wanted = [option("osd", "osd_memory_target", "939524096"), option("osd", "osd_mclock_max_capacity_iops_hdd", "315")]
    database = {one.key: one.value for one in wanted}
    assert option_differences(wanted, database, {0: "ssd"}, settings) == ()
    (found,) = option_differences([option("osd")], {("osd", PROFILE): "high_client_ops"}, {0: "ssd"}, settings)
    assert found == f"osd.0 has {PROFILE} balanced instead of high_client_ops"


def test_a_difference_names_the_osd_the_option_and_both_values() -> None:
    wanted = [option("osd/class:hdd"), option("osd.2", "osd_recovery_sleep", "0.500000")]
    settings = {
        0: {PROFILE: "high_client_ops"},
        1: {PROFILE: "balanced"},
        2: {PROFILE: "high_client_ops", "osd_recovery_sleep": "0.5"},
    }
    found = option_differences(wanted, {("osd.2", "osd_recovery_sleep"): "1"}, dict.fromkeys(range(3), "hdd"), settings)
    assert list(found) == [
        f"the configuration database (osd/class:hdd) has {PROFILE} no value instead of high_client_ops",
        "the configuration database (osd.2) has osd_recovery_sleep 1 instead of 0.500000",
        f"osd.1 has {PROFILE} balanced instead of high_client_ops",
    ]
    problems = reading_problems(OptionReading(differences=found, problem="the manager did not answer"))
    assert len(problems) == 4
    assert problems[-1] == "the manager did not answer"


@st.composite
def records(draw: st.DrawFn) -> tuple[OptionRecord, dict[OptionKey, str]]:
    """Return a record, and the database before it."""
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    before = draw(st.dictionaries(st.sampled_from(KEYS), VALUES))
    options = tuple(
        RecordedOption(who=who, name=name, value=draw(VALUES), previous=before.get((who, name))) for who, name in keys
    )
    return OptionRecord(options=options), before


@given(records(), st.data())
def test_whatever_was_set_when_the_conductor_died_is_restored(
    case: tuple[OptionRecord, dict[OptionKey, str]], data: st.DataObject
) -> None:
    record, before = case
    database = before
    # Several conductors and teardowns, each killed after some of its changes.
    for _ in range(data.draw(st.integers(0, 3))):
        changes, problems = changes_of(record, database, restoring=data.draw(st.booleans()))
        assert problems == []
        database = applied(database, changes[: data.draw(st.integers(0, len(changes)))])
    changes, remarks = changes_of(record, database, restoring=True)
    assert remarks == []
    assert applied(database, changes) == before


@given(records())
def test_all_options_are_set_at_once_and_then_no_more(case: tuple[OptionRecord, dict[OptionKey, str]]) -> None:
    record, before = case
    changes, problems = changes_of(record, before)
    database = applied(before, changes)
    assert problems == []
    assert changes_of(record, database) == ([], [])
    assert all(float_or_text(database[one.key]) == float_or_text(one.value) for one in record.options)


@given(records(), st.data())
def test_what_somebody_else_changed_meanwhile_is_left_alone_and_reported(
    case: tuple[OptionRecord, dict[OptionKey, str]], data: st.DataObject
) -> None:
    record, before = case
    database = applied(before, changes_of(record, before)[0])
    changed = data.draw(st.sampled_from(record.options))
    database[changed.key] = "somebody's"
    changes, remarks = changes_of(record, database, restoring=True)
    assert changed.key not in dict(changes)
    found = "unset" if changed.previous is None else changed.previous
    (remark,) = remarks
    assert remark == (
        f"option {changed.name} of {changed.who} is somebody's, but this run changed it from {found} to "
        f"{changed.value}: somebody else has changed it since"
    )
    assert applied(database, changes) == before | {changed.key: "somebody's"}
    assert len(changes_of(record, database)[1]) == 1


def test_an_option_that_somebody_else_removed_is_left_alone() -> None:
    record = OptionRecord(options=(RecordedOption(who="osd", name=PROFILE, value="a", previous="b"),))
    changes, remarks = changes_of(record, {}, restoring=True)
    assert changes == []
    assert f"option {PROFILE} of osd was removed" in remarks[0]


def float_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
