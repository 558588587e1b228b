"""What can be wrong with the workloads of the network tools."""

from typing import Any

from support.corpus_tools import SPELLING
from support.manifests import REMOVED, Manifest, changed

_W = "spec.workloads[0]"
_NO_TCP = "a point does not know the workload's other protocols; the API server does"
_UDP: dict[str, Any] = {"protocol": ["UDP"], "bitrate": "100M"}


def between_clients(name: str, tool: str, parameters: Any, *says: str, **more: Any) -> Manifest:
    """Return a run of a network tool without storage; `more` are changes and reasons."""
    reasons = {key: more.pop(key) for key in ("model_accepts", "server_accepts") if key in more}
    changes = {"spec.storage": REMOVED, "spec.workloads": [{"name": "w", tool: parameters}]}
    return Manifest(name=name, changes={**changes, **more.get("changes", {})}, says=says, **reasons)


def _bad(tool: str, path: str, value: Any, words: str, *, at: str = "", **more: Any) -> Manifest:
    """Return a run with one parameter that is refused at its path, or at `at`."""
    parameters = changed({"p": dict(more.pop("given", {}))}, {f"p.{path}": value})["p"]
    name = f"{tool} {path} {str(value)[:24]!r}"
    return between_clients(name, tool, parameters, f"{_W}.{tool}.{at or path}", words, **more)


def _axis(tool: str, name: str, first: Any, wrong: tuple[tuple[Any, str], ...], **given: Any) -> list[Manifest]:
    """Return what is wrong with an axis whose values may be like `first`."""
    return [
        _bad(tool, name, first, "must be of type array", given=given),
        _bad(tool, name, [], "at least 1 items", given=given),
        _bad(tool, name, [first] * 65, "at most 64 items", given=given),
        _bad(tool, name, [first, first], "Duplicate value", at=f"{name}[1]", given=given),
        *(_bad(tool, name, [value], words, at=f"{name}[0]", given=given) for value, words in wrong),
    ]


_IPERF3 = [
    *_axis(
        "iperf3",
        "streams",
        4,
        (
            (0, "greater than or equal to 1"),
            (129, "less than or equal to 128"),
            ("4", "must be of type integer"),
        ),
    ),
    *_axis(
        "iperf3",
        "window",
        "1Mi",
        (
            (1023, "greater than or equal to 1024"),
            (2**26 + 1, "less than or equal to 67108864"),
            ("4" * 33, "may not be more than 32 bytes"),
            ("65Mi", "should match"),
            ("4MB", "should match"),
        ),
    ),
    _bad("iperf3", "window", ["0.5Mi"], "should match", at="window[0]", model_accepts=SPELLING),
    *_axis("iperf3", "direction", "Send", (("Both", 'supported values: "Send", "Receive"'),)),
    *_axis("iperf3", "protocol", "TCP", (("SCTP", 'supported values: "TCP", "UDP"'),)),
    *(
        _bad("iperf3", "bitrate", value, words, given=_UDP)
        for value, words in (
            (9999, "greater than or equal to 10000"),
            (10**12, "less than or equal to 999000000000"),
            ("1" * 33, "may not be more than 32 bytes"),
            ("9k", "should match"),
            ("1T", "should match"),
        )
    ),
    between_clients(
        "UDP without a bitrate",
        "iperf3",
        {"protocol": ["UDP"]},
        f"{_W}.iperf3.bitrate",
        "must be set for UDP, which does not find its rate itself; set the bits per second of a stream",
    ),
    _bad("iperf3", "bitrate", "100M", "applies only to UDP", model_accepts=_NO_TCP),
    _bad("iperf3", "datagramBytes", 1500, "applies only to UDP", model_accepts=_NO_TCP),
    *(
        _bad("iperf3", "datagramBytes", value, words, given=_UDP)
        for value, words in (
            (15, "greater than or equal to 16"),
            (65508, "less than or equal to 65507"),
            ("1400", "must be of type integer"),
        )
    ),
    between_clients(
        "iperf3 with a long ramp",
        "iperf3",
        {},
        f"{_W}.rampSeconds",
        "must be at most 60 with iperf3, which omits no more; lower it",
        changes={"spec.workloads": [{"name": "w", "iperf3": {}, "rampSeconds": 61, "runtimeSeconds": 100}]},
    ),
]

_PING = [
    *_axis(
        "ping",
        "size",
        56,
        (
            (15, "greater than or equal to 16"),
            (65508, "less than or equal to 65507"),
            ("56", "must be of type integer"),
        ),
    ),
    *(
        _bad("ping", "intervalMilliseconds", value, words)
        for value, words in (
            (9, "greater than or equal to 10"),
            (1001, "less than or equal to 1000"),
            ("10", "must be of type integer"),
        )
    ),
]

_PAIRING = [
    _bad(tool, "pairing", "Everybody", 'supported values: "EachPair", "OneToAll", "AllAtOnce"')
    for tool in ("iperf3", "netcat", "ping")
]

NETWORK = [*_IPERF3, *_PING, *_PAIRING]

NETWORK_ACCEPTED = [
    *(between_clients(f"{tool} by default", tool, {}) for tool in ("iperf3", "netcat", "ping")),
    between_clients(
        "iperf3 with everything",
        "iperf3",
        {
            "streams": [1, 128],
            "window": [1024, "64Mi"],
            "direction": ["Send", "Receive"],
            "protocol": ["TCP", "UDP"],
            "bitrate": "999G",
            "datagramBytes": 65507,
            "pairing": "AllAtOnce",
        },
    ),
    between_clients("pings of all sizes", "ping", {"size": [16, 65507], "intervalMilliseconds": 1000}),
    between_clients(
        "iperf3 beside fio",
        "iperf3",
        {},
        changes={
            "spec.storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
            "spec.workloads": [{"name": "w", "iperf3": {}}, {"name": "storage", "fio": {}}],
        },
    ),
]
