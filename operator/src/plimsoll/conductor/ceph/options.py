"""Sets options in Ceph's configuration database, and takes OSDs away, after storing a record of what to restore.

The record is in the monitors' key-value store, and not in the pool as the note of flags: options affect the whole
cluster, even after the pool is gone, and a bad one may make placement groups inactive.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import ValidationError

from plimsoll.api.environment import CephOption
from plimsoll.api.names import FailureReason
from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.options import (
    Database,
    OptionDescription,
    OptionRecord,
    RecordedOption,
    RecordedOsd,
    changes_of,
    database_key,
    expected_settings,
    option_differences,
    parse_option_help,
    stored_value,
    why_refused,
)
from plimsoll.ceph.osds import Osd, parse_osd_tree
from plimsoll.ceph.rights import FORCE
from plimsoll.ceph.watch import OptionReading
from plimsoll.conductor.ceph.commands import CommandError, Commands, if_present
from plimsoll.plan.document import owner_of_options

_READING_SECONDS = 12.0  # the limit of each command: a conductor has 30 s to end after SIGTERM
_REWEIGHTS = 65536  # steps of a reweight
_log = logging.getLogger(__name__)


class RecordError(CommandError):
    """A record of options cannot be read: it is kept for the version that wrote it, and a retry does not help."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(
            f"ceph config-key get {key}",
            f"printed {text[:40]!r}, which is no record of options that this version can read; use the version that "
            "wrote it, or restore the options of spec.storage.rook.config by hand (`ceph config dump`), and then "
            f"remove the record: `ceph config-key rm {key}`",
        )


class NotPreparedError(Exception):
    """The cluster is not prepared for a run, because of `problems`; with a `refusal`, these remain for ever."""

    def __init__(self, problems: Iterable[str], refusal: FailureReason | None = None) -> None:
        self.problems = tuple(problems)
        self.refusal = refusal
        super().__init__("; ".join(self.problems))


async def options_of_others(commands: Commands, *, uid: str) -> list[str]:
    """Return which other runs have options set: no run may measure with them. See `Commands.ceph` for errors."""
    keys = [key.text() for key in parse_answer(await commands.ceph("config-key", "ls")).elements()]
    owners = [owner for key in keys if (owner := owner_of_options(key)) not in {None, uid}]
    return [
        f"run {owner} has set options of the OSDs, or taken OSDs away, which is not undone yet; wait until its "
        "objects are removed, or see docs/reference/ceph.md, Options of the OSDs"
        for owner in owners
    ]


async def set_options(commands: Commands, options: Sequence[CephOption], *, key: str) -> tuple[CephOption, ...]:
    """Record options' previous values under `key`, set them, and return them as the database stores them.

    NotPreparedError if they cannot be set; see `Commands.ceph` for other errors.
    """
    record = await read_record(commands, key)
    if record is None:
        descriptions: dict[str, OptionDescription] = {}
        for name in dict.fromkeys(option.name for option in options):
            if (text := await if_present(commands.ceph("config", "help", name))) is not None:
                descriptions[name] = parse_option_help(text)
        if refusals := [*_refusals(options, descriptions, await _osds(commands))]:
            raise NotPreparedError(refusals, FailureReason.CEPH_OPTION_REFUSED)
        database = await _database(commands, options)
        recorded = (
            RecordedOption(
                who=option.who,
                name=option.name,
                value=stored_value(option.value, descriptions[option.name].type),
                previous=database.get(option.key),
            )
            for option in options
        )
        record = OptionRecord(options=tuple(recorded))
        await _store(commands, key, record)
    changes, problems = changes_of(record, await _database(commands, record.options))
    if problems:
        raise NotPreparedError(problems)
    for (who, name), value in changes:
        try:
            await _set_option(commands, who, name, value)
        except CommandError as error:
            if "EINVAL" not in error.reason:
                raise
            problem = f"option {name} cannot be {value}: {error}"
            raise NotPreparedError([problem], FailureReason.CEPH_OPTION_REFUSED) from error
    return tuple(CephOption(who=option.who, name=option.name, value=option.value) for option in record.options)


async def restore_options(commands: Commands, *, key: str) -> None:
    """Restore recorded options and OSDs that others have not changed, then remove the record; see `Commands.ceph`."""
    await give_back(commands, key=key)
    record = await read_record(commands, key)
    if record is None:
        return
    changes, remarks = changes_of(record, await _database(commands, record.options), restoring=True)
    for remark in remarks:
        _log.warning("%s; it is left as it is", remark)
    for (who, name), value in changes:
        # Exactly as it was, even if Ceph would not accept it today.
        await _set_option(commands, who, name, value, FORCE)
    await commands.ceph("config-key", "rm", key)
    _log.info("restored %d options of the OSDs", len(changes))


async def record_osds(
    commands: Commands, osds: Iterable[int], action: Literal["Out", "Down"], *, key: str
) -> tuple[RecordedOsd, ...]:
    """Add OSDs that are to be taken away to the record under `key`; see `Commands.ceph`.

    ValueError if one is down or out already, or if another run has a record: it may have taken others away.
    """
    record, present = await read_record(commands, key) or OptionRecord(), await _osds(commands)
    recorded = []
    for number in osds:
        osd = present.get(number)
        if osd is None or not osd.is_up or not osd.reweight:
            raise ValueError(f"osd.{number} is down or out already")
        recorded.append(RecordedOsd(number=number, action=action, reweight=osd.reweight))
    await _store(commands, key, record.model_copy(update={"osds": tuple(recorded)}))
    # After the own record is stored: of two runs that do this at the same time, one sees the other's.
    if others := await options_of_others(commands, uid=owner_of_options(key) or ""):
        raise ValueError(others[0])
    return tuple(recorded)


async def take_away(commands: Commands, osds: Sequence[RecordedOsd]) -> None:
    """Take OSDs away that are recorded; see `Commands.ceph` for errors."""
    for osd in osds:
        if osd.action == "Out":
            await commands.ceph("osd", "reweight", str(osd.number), "0")
    if down := [osd.number for osd in osds if osd.action == "Down"]:
        # Without the flag, the OSDs report themselves up again at once.
        await commands.ceph("osd", "set-group", "noup", *(f"osd.{number}" for number in down))
        await commands.ceph("osd", "down", *map(str, down))


async def returned_osds(commands: Commands, osds: Sequence[RecordedOsd]) -> tuple[int, ...]:
    """Return the OSDs among these that came up or in before they were given back; see `Commands.ceph`."""
    present = await _osds(commands)
    states = [(osd, present[osd.number]) for osd in osds if osd.number in present]
    return tuple(osd.number for osd, now in states if (now.is_up if osd.action == "Down" else now.reweight))


async def give_back(commands: Commands, *, key: str) -> None:
    """Give the recorded OSDs back, except changed ones, and remove them from the record; see `Commands.ceph`."""
    record = await read_record(commands, key)
    if record is None or not record.osds:
        return
    present = await _osds(commands)
    for osd in record.osds:
        reweight = present[osd.number].reweight if osd.number in present else None
        if reweight is None:
            _log.warning("osd.%d no longer exists", osd.number)
        elif osd.action == "Out" and reweight and abs(reweight - osd.reweight) >= 1 / _REWEIGHTS:
            _log.warning("osd.%d has reweight %g, which somebody else has set; it is left", osd.number, reweight)
        elif osd.action == "Out":
            # Ceph rounds down to one of its steps.
            step = min(1.0, (round(osd.reweight * _REWEIGHTS) + 0.5) / _REWEIGHTS)
            await commands.ceph("osd", "reweight", str(osd.number), f"{step:.6f}")
    down = [f"osd.{osd.number}" for osd in record.osds if osd.action == "Down" and osd.number in present]
    if down:
        # Even if it is not set: a command that was just killed may still set it.
        await commands.ceph("osd", "unset-group", "noup", *down)
    if record.options:
        await _store(commands, key, record.model_copy(update={"osds": ()}))
    else:
        await commands.ceph("config-key", "rm", key)
    _log.info("gave %d OSDs back", len(record.osds))


async def read_options(commands: Commands, options: Sequence[CephOption]) -> OptionReading:
    """Compare the values of the database and of all OSDs that are up with the run's. Never raises."""
    shown: dict[int, Mapping[str, str]] = {}
    classes: Mapping[int, str] = {}
    problem = ""
    try:
        database = await _database(commands, options)
    except (CommandError, ValueError) as error:
        return OptionReading(problem=str(error))
    try:
        osds = await _osds(commands)
        classes = {number: osd.device_class for number, osd in osds.items()}
        for number in (number for number, osd in osds.items() if osd.is_up):
            names = expected_settings(options, number, classes[number])
            shown[number] = {name: await show_option(commands, number, name) for name in names}
    except (CommandError, ValueError) as error:
        problem = str(error)
    return OptionReading(differences=option_differences(options, database, classes, shown), problem=problem)


async def read_record(commands: Commands, key: str) -> OptionRecord | None:
    """Return the record; None without one. RecordError if it is malformed; see `Commands.ceph` for other errors."""
    text = await if_present(commands.ceph("config-key", "get", key))
    if text is None:
        return None
    try:
        return OptionRecord.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(key, text) from error


async def show_option(commands: Commands, osd: int, name: str) -> str:
    """Return the value of an option that an OSD uses; see `Commands.ceph` for errors."""
    return (await commands.ceph("config", "show", f"osd.{osd}", name, limit_seconds=_READING_SECONDS)).strip()


async def _database(commands: Commands, options: Iterable[CephOption | RecordedOption]) -> Database:
    """Return the values of options that the configuration database contains."""
    database = {}
    for option in options:
        answer = commands.ceph("config-key", "get", database_key(*option.key), limit_seconds=_READING_SECONDS)
        if (value := await if_present(answer)) is not None:
            database[option.key] = value
    return database


async def _store(commands: Commands, key: str, record: OptionRecord) -> None:
    await commands.ceph("config-key", "set", key, record.model_dump_json())


async def _osds(commands: Commands) -> Mapping[int, Osd]:
    return parse_osd_tree(await commands.ceph("osd", "tree", limit_seconds=_READING_SECONDS))


async def _set_option(commands: Commands, who: str, name: str, value: str | None, *force: str) -> None:
    if value is None:
        await commands.ceph("config", "rm", who, name)
    else:
        await commands.ceph("config", "set", who, name, value, *force)


def _refusals(
    options: Sequence[CephOption], descriptions: Mapping[str, OptionDescription], osds: Mapping[int, Osd]
) -> Iterator[str]:
    for option in options:
        description = descriptions.get(option.name)
        if description is None:
            yield f"this version of Ceph has no option {option.name}; correct spec.storage.rook.config"
        elif refusal := why_refused(option, description):
            yield refusal
    for option in options:
        if not any(option.applies_to(number, osd.device_class) for number, osd in osds.items()):
            yield f"no OSD is {option.who}; see `ceph osd tree`, and correct spec.storage.rook.config"
