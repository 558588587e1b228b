"""The provenance of a trial's numbers: the command, the versions of the tool, and a digest of its raw output.

`sha256sum` can verify the digest. A client's digest is that of the output of `sha256sum *` for the files that its tool
wrote; a trial's digest is that of the lines `DIGEST  client-NUMBER`, by ascending client number.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from plimsoll.api.provenance import ToolUse
from plimsoll.measure.intake import ClientAnswer, ClientMeasurement
from plimsoll.measure.wording import quote

MAX_ARGUMENTS = 128
MAX_ARGUMENT_CHARACTERS = 512
MAX_VERSIONS = 8
_VERSION_CHARACTERS = 120
_DIGEST_CHARACTERS = 64


def tool_use(answers: Iterable[ClientAnswer], measured: Iterable[ClientMeasurement]) -> ToolUse | None:
    """Return the provenance of a trial; None if no client answered."""
    answers = tuple(answers)
    if not answers:
        return None
    first = answers[0]
    return ToolUse(
        versions=tuple(sorted(clients_by_version(measured)))[:MAX_VERSIONS],
        argv_client=first.client,
        argv=tuple(quote(word, MAX_ARGUMENT_CHARACTERS) for word in first.document.argv[:MAX_ARGUMENTS]),
        raw_sha256=_digest_of_all(answers),
    )


def clients_by_version(measured: Iterable[ClientMeasurement]) -> Mapping[str, list[int]]:
    """Return the clients of each version, such as `fio 3.39`, without clients whose version is unknown."""
    found = defaultdict[str, list[int]](list)
    for item in measured:
        version = quote(item.measurement.tool_version, _VERSION_CHARACTERS)
        if version:
            found[f"{quote(item.measurement.tool, _VERSION_CHARACTERS)} {version}"].append(item.client)
    return found


def listing(digests: Mapping[str, str]) -> str:
    """Return the output of `sha256sum` for files with those digests, by name."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def _digest_of_all(answers: Iterable[ClientAnswer]) -> str | None:
    """Return the digest over all clients; None if one of them sent none."""
    lines = list(_lines(answers))
    return sha256("".join(lines).encode()).hexdigest() if all(lines) else None


def _lines(answers: Iterable[ClientAnswer]) -> Iterator[str]:
    for answer in answers:
        digest = answer.document.raw_sha256
        yield f"{digest}  client-{answer.client}\n" if len(digest) == _DIGEST_CHARACTERS else ""
