"""What can be wrong with a workload of kube-burner."""

from typing import Any

from support.manifests import Manifest, changed

_W = "spec.workloads[0]"
_TOOL = f"{_W}.kubeBurner"


def _burning(name: str, parameters: Any, *says: str, **more: Any) -> Manifest:
    """Return a run of kube-burner; `more` are further fields of the workload."""
    return Manifest(name=name, changes={"spec.workloads": [{"name": "w", "kubeBurner": parameters, **more}]}, says=says)


def _bad(path: str, value: Any, words: str, *, at: str = "") -> Manifest:
    """Return a run with one parameter that is refused at its path, or at `at`."""
    parameters = changed({"p": {}}, {f"p.{path}": value})["p"]
    return _burning(f"kubeBurner {path} {str(value)[:24]!r}", parameters, f"{_TOOL}.{at or path}", words)


def _axis(name: str, most: int) -> list[Manifest]:
    return [
        _bad(name, 1, "must be of type array"),
        _bad(name, [], "at least 1 items"),
        _bad(name, [1] * 65, "at most 64 items"),
        _bad(name, [1, 1], "Duplicate value", at=f"{name}[1]"),
        _bad(name, [0], "greater than or equal to 1", at=f"{name}[0]"),
        _bad(name, [most + 1], f"less than or equal to {most}", at=f"{name}[0]"),
        _bad(name, ["1"], "must be of type integer", at=f"{name}[0]"),
    ]


def _number(path: str, most: int) -> list[Manifest]:
    return [
        _bad(path, 0, "greater than or equal to 1"),
        _bad(path, most + 1, f"less than or equal to {most}"),
        _bad(path, "1", "must be of type integer"),
    ]


BURNER = [
    *_axis("objects", 5000),
    *_axis("qps", 1000),
    *_number("burst", 5000),
    *_number("churn.percent", 100),
    *_number("churn.cycles", 20),
    *_number("readySeconds", 3600),
    _bad("pods", "yes", "must be of type boolean"),
    _bad("volumeSize", "1Ki", "must be from 1Mi to 1Ti"),
    _bad("volumeSize", "2Ti", "must be from 1Mi to 1Ti"),
    _bad("volumeSize", "64MB", "should match"),
    _bad("volumeSize", "1" * 33, "may not be more than 32 bytes"),
    _bad("volumeSize", "1048577.5", "must be a whole number of bytes"),
    _burning("kubeBurner by several clients", {}, f"{_W}.clients", "does not apply to kubeBurner", clients=[1, 2]),
]

BURNER_ACCEPTED = [
    _burning("kubeBurner by default", {}),
    _burning(
        "kubeBurner with everything",
        {
            "objects": [1, 5000],
            "qps": [500, 1000],
            "burst": 5000,
            "churn": {"percent": 1, "cycles": 2},
            "volumeSize": "1Ti",
            "pods": False,
            "readySeconds": 600,
        },
        clients=[1],
    ),
]
