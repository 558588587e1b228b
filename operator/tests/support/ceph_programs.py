"""`ceph`, `rbd` and `rados` for tests, with the behaviour and the error messages of Ceph 18.2.

One file contains the cluster's state, which tests read and change (`pretended_ceph`). Run as a program,
this module is `rbd` or `rados`; imported as `rados`, it is Ceph's module for `ceph`.
"""

import fcntl
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "ceph-18.2"
NO_ENTRY = "(2) No such file or directory"
FORCE_FULL = "--force-full"
FULL = ",full,full_quota"  # the flags of a pool at its quota
STATE = "PLIMSOLL_PRETENDED_CEPH"
_RECORDED = {"versions", "osd-metadata", "osd-tree", "osd-df", "osd-dump", "df-detail"}

State = dict[str, Any]

_OPTIONS = Path(__file__).resolve().with_name("ceph_options.json")
OPTIONS: Mapping[str, Mapping[str, Any]] = json.loads(_OPTIONS.read_text())
"""Options, by what `ceph config help` says about each."""


class ProgramError(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


@contextmanager
def locked(file: Path) -> Iterator[State]:
    """Yield the cluster's state for changes, to one program at a time."""
    with file.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(file.read_text())
        yield state
        # All or nothing: a program may be killed here.
        written = file.with_suffix(".new")
        written.write_text(json.dumps(state))
        written.replace(file)


# As `get_command_descriptions` of 18.2.7 and 20.2.4 lists them: what reads, and does not need capabilities to execute.
_READING = {
    "mon": {"status", "health", "versions", "df", "report", "log last", "config dump"},
    "osd": {"osd metadata", "osd tree", "osd dump", "osd df", "osd pool ls", "osd crush rule dump", "osd ls"}
    | {"osd erasure-code-profile get"},
    "pg": {"pg dump"},
}
_GRANT = re.compile(r'allow command "([^"]+)"(?: with((?: \w+(?:=| regex )"[^"]*")+))?')
_LIMIT = re.compile(r' (\w+)(=| regex )"([^"]*)"')


def permits(capabilities: str, prefix: str, arguments: Mapping[str, str]) -> bool:
    """Whether monitors let a user with these capabilities run a command, as MonCap.cc decides it."""
    for grant in capabilities.split(", "):
        if grant in {"allow service osd r", "profile simple-rados-client"}:
            services = ("osd",) if grant.startswith("allow") else ("mon", "osd", "pg")
            if any(prefix in _READING[service] for service in services):
                return True
            continue
        match = _GRANT.fullmatch(grant)
        assert match is not None, f"unknown: {grant}"
        if match[1] == prefix and all(
            name in arguments
            and (arguments[name] == value if sign == "=" else re.fullmatch(value, arguments[name]) is not None)
            for name, sign, value in _LIMIT.findall(match[2] or "")
        ):
            return True
    return False


def _option(arguments: list[str], *names: str) -> str:
    for name in names:
        if name in arguments:
            at = arguments.index(name)
            value = arguments[at + 1]
            del arguments[at : at + 2]
            return value
    return ""


def _check_pool(state: State, name: str, message: str) -> None:
    if name not in {pool["pool_name"] for pool in state["pools"]}:
        raise ProgramError(1 if "{}" in message else 2, message.replace("{}", name))


def _file_system(state: State, arguments: list[str]) -> str:
    """Answer `fs get` or `fs volume info`; each time, one of the deleted subvolumes has been purged meanwhile."""
    *question, name = arguments
    if state.get("file_system", {}).get("fs_name") != name:
        raise ProgramError(2, f"Error ENOENT: filesystem '{name}' not found")
    if question == ["fs", "get"]:
        return "\n" + json.dumps({"mdsmap": state["file_system"], "id": 1})
    purging = state.get("purging")
    if purging is None:
        return "\n" + json.dumps({"pools": {}})
    state["purging"] = max(purging - 1, 0)
    return "\n" + json.dumps({"pending_subvolume_deletions": purging, "pools": {}})


def _config(state: State, arguments: list[str]) -> str:
    """Answer a command on the configuration database, whose keys are `WHO NAME`."""
    database: dict[str, str] = state["config"]
    match arguments:
        case ["help", name]:
            if name not in OPTIONS:
                raise ProgramError(2, f"Error ENOENT: configuration option '{name}' not recognized")
            return json.dumps({"name": name, **OPTIONS[name]})
        case ["show", daemon, name]:
            defaults = json.loads((GOLDEN / "config-show-with-defaults-osd.0.json").read_text())
            shown = {entry["name"]: entry["value"] for entry in defaults}
            # A single OSD takes precedence over all.
            shown |= {key.split(" ")[1]: value for key, value in database.items() if key.startswith(("osd ", "osd/"))}
            shown |= {key.split(" ")[1]: value for key, value in database.items() if key.startswith(f"{daemon} ")}
            shown |= state["overridden"].get(daemon, {})
            if name not in shown:
                raise ProgramError(2, "Error ENOENT: ")
            return f"{shown[name]}\n"
        case ["set", who, name, value, *force]:
            choices = OPTIONS[name].get("enum_values") or ()
            if not force and ((choices and value not in choices) or value == "invalid"):
                raise ProgramError(22, f"Error EINVAL: error parsing value: '{value}' is not one of {choices}")
            database[f"{who} {name}"] = value
            return ""
        case ["rm", who, name]:
            database.pop(f"{who} {name}", None)
            return ""
    raise ProgramError(22, f"Error EINVAL: invalid command {arguments}")


def _config_key(state: State, arguments: list[str]) -> str:
    stored: dict[str, str] = state["config-key"]
    # Ceph keeps the configuration database under the same keys.
    options: dict[str, str] = {f"config/{key.replace(' ', '/')}": value for key, value in state["config"].items()}
    match arguments:
        case ["ls"]:
            return json.dumps([*options, *stored])
        case ["get", key] if key in options:
            return options[key]
        case ["set", key, value]:
            stored[key] = value
            return ""
        case [_, key] if key not in stored:
            raise ProgramError(2, f"Error ENOENT: obtaining key '{key}'")
        case ["get", key]:
            return stored[key]
        case ["rm", key]:
            del stored[key]
            return ""
    raise ProgramError(22, f"Error EINVAL: invalid command {arguments}")


def _status(state: State) -> str:
    status = json.loads((GOLDEN / f"{state['status']}.json").read_text())
    status["osdmap"] |= state.get("osdmap", {})
    for name in state["checks"]:
        if name not in state["muted"]:
            status["health"]["status"] = "HEALTH_WARN"
        status["health"]["checks"][name] = {"severity": "HEALTH_WARN", "muted": name in state["muted"]}
    return json.dumps(status | ({"fsmap": state["fsmap"]} if "fsmap" in state else {}))


def _osd(state: State, action: str, *values: str) -> str:
    """Answer a command on OSDs, which report themselves up again unless they may not."""
    tree = state.setdefault("osd-tree", json.loads((GOLDEN / "osd-tree.json").read_text()))
    osds = [node for node in tree["nodes"] if node["type"] == "osd"]
    names = values[:1] if action == "reweight" else values[1:] if action.endswith("group") else values
    for number in (int(name.removeprefix("osd.")) for name in names):
        (osd,) = (node for node in osds if node["id"] == number)
        if action == "reweight":
            osd["reweight"] = int(float(values[1]) * 2**16) / 2**16
        elif action != "down":
            osd["noup"] = action == "set-group"
        osd["status"] = "down" if osd.get("noup") and action != "set-group" else "up"
    up, members = (sum(osd["status"] == "up" for osd in osds), sum(osd["reweight"] > 0 for osd in osds))
    state["osdmap"] = {"num_up_osds": up, "num_in_osds": members}
    return ""


def _ceph(state: State, arguments: list[str]) -> str:
    match arguments:
        case ["status"]:
            return _status(state)
        case ["osd", "pool", "ls", "detail"]:
            return "\n" + json.dumps(state["pools"])
        case ["osd", "pool", "set" | "set-quota", *_] | ["tell", _, "cache", "drop"]:
            *_, name, flag, value = arguments  # dropping caches changes nothing
            for pool in (pool for pool in state["pools"] if pool["pool_name"] == name):
                if flag == "max_bytes":
                    pool["quota_max_bytes"] = int(value)
                    pool["flags_names"] = pool["flags_names"].removesuffix(FULL if value == "0" else "")
                else:
                    flags = {*pool["flags_names"].split(",")} - {flag} | ({flag} if value == "1" else set())
                    pool["flags_names"] = ",".join(sorted(flags))
            return ""
        case ["fs", "get", _] | ["fs", "volume", "info", _]:
            return _file_system(state, arguments)
        case ["pg", "dump", "pgs_brief"]:
            tree = state.get("osd-tree") or json.loads((GOLDEN / "osd-tree.json").read_text())
            acting = state.get("acting", [node["id"] for node in tree["nodes"] if node["type"] == "osd"])
            groups = [
                {
                    "pgid": f"{pool['pool_id']}.{number:x}",
                    "state": state.get("groups", "active+clean"),
                    "acting": acting,
                }
                for pool in state["pools"]
                for number in range(pool["pg_num"])
            ]
            return "\n" + json.dumps({"pg_ready": True, "pg_stats": groups})
    recorded = "-".join(arguments)
    if recorded not in {*_RECORDED, *state}:
        raise ProgramError(22, "Error EINVAL: invalid command")
    return json.dumps(state[recorded]) if recorded in state else (GOLDEN / f"{recorded}.json").read_text()


def answer(state: State, arguments: list[str]) -> str:
    """Return what a `ceph` command prints; ProgramError if it fails."""
    if arguments[0] == "osd" and arguments[1] in {"reweight", "down", "set-group", "unset-group"}:
        return _osd(state, *arguments[1:])
    command = {"config": _config, "config-key": _config_key}.get(arguments[0])
    return command(state, arguments[1:]) if command else _ceph(state, arguments)


def _rbd(state: State, arguments: list[str]) -> str:
    if arguments[:3] == ["config", "image", "set"]:
        state["images"][arguments[3].partition("/")[2]][arguments[4]] = arguments[5]
        return ""
    names = ("--size", "--data-pool", "--pool", "--image-feature")
    size, data_pool, pool, _ = (_option(arguments, name) for name in names)
    words = [argument for argument in arguments if not argument.startswith("--")]
    image = words[-1].partition("/")[2]
    _check_pool(state, pool or words[-1].partition("/")[0], f"rbd: error opening pool '{pool}': {NO_ENTRY}")
    match words[:-1] or words:
        case ["create"] if image in state["images"]:
            log = "2026-11-21T17:05:26.692+0000 7f3fad67e640 -1 librbd: rbd image is there"
            raise ProgramError(17, f"rbd: create error: (17) File exists\n{log}")
        case ["create"]:
            state["images"][image] = {"size": int(size.removesuffix("B")), "data_pool": data_pool, "watched": 0}
        case ["info"] if image in state["images"]:
            return json.dumps({"name": image, **{key: it for key, it in state["images"][image].items() if it != ""}})
        case ["info"]:
            raise ProgramError(2, f"rbd: error opening image {image}: {NO_ENTRY}")
        case ["ls"]:
            return json.dumps(sorted(state["images"]))
        case ["rm"] if state["images"][image]["watched"]:
            state["images"][image]["watched"] -= 1
            raise ProgramError(
                16, "rbd: error: image still has watchers\nThis means the image is still open or the client"
            )
        case [*trash, "rm"]:
            del state["trash" if trash else "images"][image]
        case ["trash"]:
            return json.dumps([{"id": number, "name": name} for number, name in state["trash"].items()])
        case _:
            raise ProgramError(1, f"error: {words}")
    return ""


def _rados(state: State, arguments: list[str]) -> str:
    if {"-h", "--help"} & {*arguments}:
        return "usage: rados [options] [commands]\n"
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, operands = arguments[:end], arguments[end + 1 :]
    pool, namespace = _option(options, "--pool"), _option(options, "--namespace")
    named = _option(options, "--obj-name-file")
    locators = [text for text in options if text.startswith("--object-locator=")]
    arguments = [text for text in options if text not in {*locators, FORCE_FULL}]
    if any(text.startswith("-") and text != "-" for text in arguments):
        raise ProgramError(1, "unrecognized option")
    arguments += [os.fsdecode(Path(named).read_bytes())] if named else operands
    locator = "".join(locators).partition("=")[2]
    _check_pool(state, pool, "error opening pool {}: " + NO_ENTRY)
    objects = state["objects"].setdefault(f"{pool}/{namespace}", {})
    match arguments:
        case ["get", name, "-"]:
            if name not in objects:
                raise ProgramError(1, f"error getting {pool}/{name}: {NO_ENTRY}")
            return str(objects[name])
        case ["put", name, "-"]:
            objects[name] = sys.stdin.read()
        case ["rm", *names]:
            for name in names:
                if name not in objects or state["locators"].get(name, "") != locator:
                    raise ProgramError(1, f"error removing {pool}>{name}: {NO_ENTRY}")
                del objects[name]
        case ["ls"]:
            located = {name: {"locator": text} for name, text in state["locators"].items()}
            return json.dumps([{"namespace": namespace, "name": name, **located.get(name, {})} for name in objects])
        case _:
            raise ProgramError(1, f"unrecognized command {arguments}")
    return ""


_RUN: dict[str, Callable[[State, list[str]], str]] = {"rbd": _rbd, "rados": _rados}


class Rados:
    def __init__(self, *, rados_id: str, conffile: str, conf: Mapping[str, str]) -> None:
        assert rados_id
        assert not conffile, "CEPH_CONF names it"
        assert conf
        self._user = rados_id

    def connect(self) -> None:
        with locked(Path(os.environ[STATE])) as state:
            if unreadable := state.get("unreadable key", ""):
                # As librados does it, past Python.
                log = (
                    "2026-11-26T22:14:21.335+0000 7f3fad67e640 -1 auth: error setting modifier for [client.u] type=key"
                )
                os.write(2, f"{log} val={unreadable}Malformed input\nanother line of the log\n".encode())
                raise OSError(5, "RADOS I/O error (error connecting to the cluster)")
        with Path(os.environ[STATE]).with_suffix(".connections").open("a") as connections:
            connections.write(f"{os.getpid()}\n")

    def mon_command(self, text: str, data: bytes) -> tuple[int, bytes, str]:
        """Run a command of the monitors; return its code, below 0 if it fails, its output and its message."""
        assert data == b""
        request = json.loads(text)
        assert request.pop("format") == "json"
        arguments = {name: str(value) for name, value in request.items() if name != "prefix"}
        words = request.pop("prefix").split()
        with locked(Path(os.environ[STATE])) as state:
            capabilities = state["capabilities"].get(self._user)
            if capabilities is not None and not permits(capabilities, " ".join(words), arguments):
                state["denied"].append(" ".join((*words, *arguments.values())))
                return -13, b"", "access denied"
        for value in request.values():
            words += ["--force"] if value is True else value if isinstance(value, list) else [str(value)]
        return self._answer(words)

    def osd_command(self, osd: int, text: str, data: bytes) -> tuple[int, bytes, str]:
        """Run a command of an OSD, as `mon_command` does."""
        assert data == b""
        return self._answer(["tell", f"osd.{osd}", *json.loads(text)["prefix"].split()])

    @staticmethod
    def _answer(words: list[str]) -> tuple[int, bytes, str]:
        code, output, message = _run("ceph", words, answer)
        return -code, output.encode(), message.partition(": ")[2]


def _run(program: str, arguments: list[str], execute: Callable[[State, list[str]], str]) -> tuple[int, str, str]:
    """Return the code, output and error of a command, unless it hangs."""
    command = f"{program} {' '.join(arguments)}"
    with locked(Path(os.environ[STATE])) as state:
        if arguments == ["--version"]:
            return 0, f"ceph version {state['version']} (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)\n", ""
        state["log"].append(command)
        hangs = any(command.startswith(beginning) for beginning in state["hanging"])
        full = (pool["pool_name"] for pool in state["pools"] if "full_quota" in pool["flags_names"])
        if program == "rados" and {"put", "rm"} & {*arguments} and FORCE_FULL not in arguments:
            hangs |= not {*full}.isdisjoint(arguments)
        if any(command.startswith(beginning) for beginning in state["refused"]):
            return 13, "", "Error EACCES: access denied"
        if not hangs:
            try:
                return 0, execute(state, arguments), ""
            except ProgramError as failure:
                return failure.code, "", str(failure)
    signal.pause()
    return 1, "", "a signal"


def main(program: str, arguments: list[str]) -> int:
    _option(arguments, "--id")
    _option(arguments, "--format")
    code, output, error = _run(program, arguments, _RUN[program])
    sys.stdout.write(output)
    sys.stderr.write(f"{error}\n" if error else "")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
