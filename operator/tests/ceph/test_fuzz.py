"""Every golden document with a change: the parsers return a result or raise ValueError."""

import json
import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.ceph.environment import Outputs, ceph_environment
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.osds import SETTINGS, parse_osd_df, parse_osd_metadata, parse_osd_tree
from plimsoll.ceph.pools import parse_counters, parse_crush_rules, parse_file_system, parse_pools, parse_profile
from plimsoll.ceph.versions import parse_versions
from plimsoll.ceph.watch import parse_status
from support.goldens import CEPH_VERSIONS, CRUSH_RULES, NEW_ROOK, ceph, rook
from tools.damage import damaged, places, value_at


def _of_both(name: str) -> list[str]:
    return [ceph(name, version) for version in CEPH_VERSIONS]


PARSERS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "status": (
        lambda text: gate_problems(parse_status(text), accepted=frozenset()),
        [*_of_both("status-osd-down"), rook("status-osd-down", NEW_ROOK)],
    ),
    "counters": (parse_counters, [*_of_both("df-detail"), rook("df-detail", NEW_ROOK)]),
    "versions": (partial(parse_versions, file_system=True), _of_both("versions")),
    "pools": (
        parse_pools,
        [ceph("osd-pool-ls-detail", "20.2"), rook("osd-pool-ls-detail"), rook("osd-pool-ls-detail", NEW_ROOK)],
    ),
    "profile": (parse_profile, [*_of_both("erasure-code-profile"), rook("erasure-code-profile-fast-ec", NEW_ROOK)]),
    "crush-rules": (parse_crush_rules, [CRUSH_RULES, rook("crush-rule-dump", NEW_ROOK)]),
    "osd-df": (parse_osd_df, [*_of_both("osd-df"), rook("osd-df", NEW_ROOK)]),
    "osd-tree": (parse_osd_tree, [*_of_both("osd-tree"), rook("osd-tree", NEW_ROOK)]),
    "osd-metadata": (parse_osd_metadata, [*_of_both("osd-metadata"), rook("osd-metadata", NEW_ROOK)]),
    "file-system": (parse_file_system, [rook("fs-get", NEW_ROOK)]),
}
CASES = [
    pytest.param(parse, text, id=f"{name}-{number}")
    for name, (parse, texts) in PARSERS.items()
    for number, text in enumerate(texts)
]
ANY_JSON = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}), st.just([{}])
).map(json.dumps)


@pytest.mark.parametrize(("parse", "text"), CASES)
@given(data=st.data())
@settings(max_examples=60)
def test_damaged_document_is_read_or_refused(parse: Callable[[str], object], text: str, data: st.DataObject) -> None:
    try:
        parse(data.draw(damaged(text)).text)
    except ValueError as error:
        assert 0 < len(str(error)) < 1000  # noqa: PT017  # it may also be read


@pytest.mark.parametrize(("parse", "text"), CASES)
@given(number=st.sampled_from(["inf", "-inf", "nan", "-nan", str(2**64 - 59), str(-(2**63))]))
@settings(max_examples=6)
def test_fields_that_nothing_reads_may_hold_any_number(parse: Callable[[str], object], text: str, number: str) -> None:
    document = json.loads(text)
    records = [value_at(document, place) for place in places(text) if isinstance(place[-1], int)]
    # The names in the other answers' objects are data.
    if parse in {PARSERS[name][0] for name in ("status", "counters", "osd-df", "osd-tree")}:
        records.append(document)
    for record in records:
        if isinstance(record, dict):
            record["unread"] = "NUMBER"
    assert parse(json.dumps(document).replace('"NUMBER"', number)) == parse(text)


def test_identifiers_of_servers_and_sizes_of_osds_may_be_odd() -> None:
    status = json.loads(rook("status-osd-down", NEW_ROOK))
    server = {"filesystem_id": 1, "rank": 0, "name": "a", "status": "up:active", "gid": 2**64 - 59}
    status["fsmap"] = {"by_rank": [server]}
    (found,) = parse_status(json.dumps(status)).metadata_servers
    assert found.process == 2**64 - 59
    osds = re.sub(r'"utilization": ?[\d.]+', '"utilization":-nan', ceph("osd-df"), count=1)
    first, *others = parse_osd_df(osds).values()
    assert first.utilisation is None
    assert all(osd.utilisation is not None for osd in others)


@pytest.mark.parametrize(("parse", "text"), CASES)
@given(part=st.floats(0, 0.999), noise=st.text(max_size=20))
@settings(max_examples=30)
def test_text_that_breaks_off_is_refused(parse: Callable[[str], object], text: str, part: float, noise: str) -> None:
    whole = text.strip()
    with pytest.raises(ValueError, match="Ceph's answer"):
        parse(whole[: round(part * (len(whole) - 1))] + "\x00" + noise)


@given(text=st.text(max_size=60) | ANY_JSON)
def test_environment_never_raises(text: str) -> None:
    outputs = Outputs(
        versions=text,
        status=text,
        osd_metadata=text,
        osd_tree=text,
        osd_df=text,
        osd_dump=text,
        df_detail=text,
        pools=text,
        crush_rules=text,
        profiles={"p": text},
        settings={0: dict.fromkeys(SETTINGS, text)},
        image=text,
    )
    assert ceph_environment(outputs, pools=("a", "b"), access="PVC").ceph is not None
