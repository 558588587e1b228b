"""Whether the trials of a point agree with each other, and whether the same clients measured all of them.

A mean describes trials that scatter around it: none of them if burst credits made one far better than the others, or if
each is worse than the one before, although each trial alone is sound.
"""

import re
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from statistics import fmean

from plimsoll.api.names import format_duration
from plimsoll.api.result import ClientPlace, Finding, PlaceDigests, Trial
from plimsoll.measure.checks.check import Check, CheckedValue, CheckedValues, client_value, evaluate
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.statistics import describe, least_variation, trend_of, two_groups_of
from plimsoll.measure.text import first_few, number_text, numbered, percent_text, quote

BY_CHANCE = 0.01  # the probability that chance alone makes the rates of a point exceed a limit
LEAST_SCATTERED = 2
LEAST_ALONG = 5  # a line through fewer trials is rarely clear, and through three often steep
LATENCY_FACTOR = 2  # limit of a latency / limit of a rate, the same as in steadiness
CLOSED_LOOP_FACTOR = 3  # the same if the storage sets the rate: then only the scatter is judged, and tails scatter
_DIGEST_BYTES = 4  # two of a thousand volumes have the same digest with a probability of 0.01 %
_DIGEST_NAME = re.compile(rf"#[0-9a-f]{{{2 * _DIGEST_BYTES}}}")

DRIFTING = Check(
    reason="Drifting",
    what=f"change of a rate along a line through {LEAST_ALONG} trials or more, as a part of its mean, if beyond chance",
    unit="%",
    suspect=10,
    remedy="precondition the storage, and look for burst credits, a filling cache and other load, then run again",
)
TRIALS_APART = Check(
    reason="TrialsApart",
    what=f"difference of a rate between groups of {LEAST_ALONG} trials or more, as a part of its mean, beyond chance",
    unit="%",
    suspect=20,
    remedy="look for storage with two states, such as another leader, a cache or garbage collection, and other load",
)
SCATTERED = Check(
    reason="Scattered",
    what=f"least variation of a rate over {LEAST_SCATTERED} trials or more, with 99 % confidence, by chi-square",
    unit="%",
    suspect=10,
    remedy="compare the trials: look for burst credits, caches and other load, and measure for longer",
)
"""The observed variation has to be far above its limit: if the point has one rate, 26 % in 2 trials, 22 % in 3, 18 % in
5, and 16 % in 10."""


def _of_latency(check: Check, factor: float, where: str) -> Check:
    quantity = f"a median or 99th percentile of latency, where {where} sets the rate,"
    what = check.what.replace("a rate", quantity)
    return replace(check, suspect=factor * (check.suspect or 0), what=what)


AGREEMENT = (DRIFTING, TRIALS_APART, SCATTERED)
OFFERED_LATENCIES = tuple(_of_latency(check, LATENCY_FACTOR, "the workload") for check in AGREEMENT)
CLOSED_LOOP_SCATTERED = _of_latency(SCATTERED, CLOSED_LOOP_FACTOR, "the storage")
CLIENTS_CHANGED = Check(
    reason="ClientsChanged",
    what="clients that were replaced between trials by one on another node or volume",
    suspect=0,
    remedy="find out why the client was replaced, and run again, with spec.clients.nodeSelector if nodes differ",
)


def judge_agreement(
    rates: Mapping[str, Sequence[float]],
    latencies: Mapping[str, Sequence[float]] | None = None,
    *,
    offers_load: bool = True,
) -> tuple[Finding, ...]:
    """Return the findings on values over trials in the order of time, by name such as `read operations/s`.

    Latencies are in nanoseconds. Their limits depend on whether the workload sets its rate (`offers_load`). Each check
    marks fewer than 1 of 100 points that vary by 10 % around a mean: that probability is divided among the values of a
    point (Bonferroni). Latencies of a closed loop, judged only if all rates agree, have a percent of their own.
    """
    present, latencies = {name: values for name, values in rates.items() if sum(values) > 0}, latencies or {}
    offered = latencies if offers_load else {}
    by_chance, findings = BY_CHANCE / max(1, len(present) + len(offered)), list[Finding]()
    for of_rate, of_latency, test in zip(AGREEMENT, OFFERED_LATENCIES, (_drift, _groups, _variation), strict=True):
        findings += evaluate(of_rate, _tested(test, present, by_chance, number_text))
        findings += evaluate(of_latency, _tested(test, offered, by_chance, format_duration))
    if not offers_load and not findings:
        by_chance = BY_CHANCE / max(1, len(latencies))
        findings += evaluate(CLOSED_LOOP_SCATTERED, _tested(_variation, latencies, by_chance, format_duration))
    return tuple(findings)


_Show = Callable[[float], str]
_Test = Callable[[Sequence[float], float, _Show], tuple[float, str]]


def _tested(test: _Test, values_by_name: Mapping[str, Sequence[float]], by_chance: float, show: _Show) -> CheckedValues:
    least = LEAST_SCATTERED if test is _variation else LEAST_ALONG
    for name, values in values_by_name.items():
        if len(values) >= least:
            value, words = test(values, by_chance, show)
            yield CheckedValue(value=value, detail=f"{name}{words}")


def _drift(values: Sequence[float], by_chance: float, show: _Show) -> tuple[float, str]:
    trend = trend_of(values)
    change = 100 * abs(trend.change)
    return change if trend.p_value < by_chance else 0.0, (
        f" {'fell' if trend.change < 0 else 'rose'} from {show(trend.first)} to {show(trend.last)} over {len(values)} "
        f"trials, by {percent_text(change)} of the mean (p = {number_text(trend.p_value)})"
    )


def _groups(values: Sequence[float], by_chance: float, show: _Show) -> tuple[float, str]:
    groups = two_groups_of(values)
    change = 100 * (groups.high - groups.low) / fmean(values)
    return change if groups.p_value < by_chance else 0.0, (
        f": {groups.lows} of {len(values)} trials have a mean of {show(groups.low)}, the others of "
        f"{show(groups.high)}, which differs by {percent_text(change)} of the mean of all (p = "
        f"{number_text(groups.p_value)})"
    )


def _variation(values: Sequence[float], by_chance: float, show: _Show) -> tuple[float, str]:
    statistic = describe(values)
    least = 100 * (least_variation(statistic, 1 - by_chance) or 0.0)
    return least, (
        f" of {len(values)} trials lie between {show(min(values))} and {show(max(values))}: their coefficient of "
        f"variation is {percent_text(100 * (statistic.coefficient_of_variation or 0.0))}, and at least "
        f"{percent_text(least)} with {100 * (1 - by_chance):.3g} % confidence"
    )


def places_of(measured: Iterable[ClientMeasurement], nodes: Mapping[int, str]) -> tuple[ClientPlace, ...]:
    """Return where the clients of a trial ran; `nodes` includes clients that only served."""
    places = {client: ClientPlace(client=client, node=node) for client, node in nodes.items()}
    for item in measured:
        host = item.answer.host
        volume = host and (host.volume or (host.device and host.device.number))
        places[item.client] = ClientPlace(client=item.client, node=item.node, volume=volume or None)
    return tuple(places[client] for client in sorted(places))


def new_places(recorded: Iterable[Trial], places: Iterable[ClientPlace]) -> tuple[ClientPlace, ...]:
    """Return the places of a trial that earlier trials of the point do not show."""
    known = next((places for _, places in reversed(_with_places(recorded))), {})
    return tuple(it for it in places if _key(_seen(known.get(it.client), it)) != _key(known.get(it.client)))


def without_names(trial: Trial) -> Trial:
    """Return a trial with digests in place of the nodes and volumes of its clients, which show changes as well."""
    if not trial.places:
        return trial
    places = sorted(trial.places, key=lambda place: place.client)
    digests = b64encode(b"".join(chain.from_iterable(map(_key, places)))).decode()
    short = PlaceDigests(clients=tuple(place.client for place in places), digests=digests)
    return trial.model_copy(update={"places": (), "place_digests": short})


def _key(place: ClientPlace | None) -> tuple[bytes, ...]:
    """Return the digests of node and volume, which are equal whether the names are known or only their digests."""
    return (_digest(place.node), _digest(place.volume or "")) if place else ()


def _digest(name: str) -> bytes:
    if _DIGEST_NAME.fullmatch(name):
        return bytes.fromhex(name[1:])
    return sha256(name.encode()).digest()[:_DIGEST_BYTES] if name else bytes(_DIGEST_BYTES)


def _with_places(recorded: Iterable[Trial]) -> list[tuple[Trial, dict[int, ClientPlace]]]:
    """Return trials as recorded, each with all places known then; the name of a digest is `#` and its digits."""
    history: list[tuple[Trial, dict[int, ClientPlace]]] = []
    known: dict[int, ClientPlace] = {}
    for trial in recorded:
        places, short = list[ClientPlace](), trial.place_digests
        if short is not None:
            names = [f"#{digits}" for digits in b64decode(short.digests).hex(" ", _DIGEST_BYTES).split()]
            for client, node, volume in zip(short.clients, names[::2], names[1::2], strict=False):
                places.append(ClientPlace(client=client, node=node, volume=volume if any(_digest(volume)) else None))
        places += trial.places
        known = known | {place.client: _seen(known.get(place.client), place) for place in places}
        history.append((trial, known))
    return history


def _seen(before: ClientPlace | None, place: ClientPlace) -> ClientPlace:
    """Return a place, with its volume as known before if its node is the same and the volume is unknown now."""
    return before if before and not place.volume and _digest(place.node) == _digest(before.node) else place


def judge_clients(recorded: Iterable[Trial], counted: Collection[Trial], noun: str = "pass") -> tuple[Finding, ...]:
    """Return the finding on clients that moved between trials that count; `recorded` are all trials, in their order."""
    attempts = {(trial.pass_number, trial.attempt) for trial in counted}
    passes = defaultdict[int, dict[tuple[bytes, ...], tuple[ClientPlace, set[int]]]](dict)
    for trial, places in _with_places(recorded):
        if (trial.pass_number, trial.attempt) in attempts:
            for client, place in places.items():
                passes[client].setdefault(_key(place), (place, set()))[1].add(trial.pass_number)
    moved = []
    for client, seen in passes.items():
        what = "node" if len({node for node, _ in seen}) > 1 else "volume"
        cases = [(getattr(place, what), numbers) for place, numbers in seen.values()]
        texts = [f"{quote(name, 120)} in {numbered(noun, numbers)}" for name, numbers in cases if name]
        if len(texts) > 1:
            moved.append(client_value(client, 1, f"was replaced by one on another {what}: {first_few(texts, 3)}"))
    return evaluate(CLIENTS_CHANGED, moved)
