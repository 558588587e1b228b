"""What a trial's numbers were made by and from: the command, the versions of the tool, a digest of its raw output.

The digest is one that `sha256sum` makes as well. That of a client is of what `sha256sum *` prints for the files that
its tool wrote; that of a trial is of the lines `DIGEST  client-NUMBER`, by ascending number of the client.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from plimsoll.api.provenance import ToolUse
from plimsoll.measure.intake import Answer, Measured
from plimsoll.measure.wording import quote

MAX_ARGUMENTS = 128
MAX_ARGUMENT_CHARACTERS = 512
MAX_VERSIONS = 8
_VERSION_CHARACTERS = 120
_DIGEST_CHARACTERS = 64


def tool_use(answers: Iterable[Answer], measured: Iterable[Measured]) -> ToolUse | None:
    """Return how the clients' tools were run, and what they left; None if no client answered."""
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


def clients_by_version(measured: Iterable[Measured]) -> Mapping[str, list[int]]:
    """Return which clients ran each version, such as `fio 3.39`; without clients whose version is not known."""
    found = defaultdict[str, list[int]](list)
    for item in measured:
        version = quote(item.measurement.tool_version, _VERSION_CHARACTERS)
        if version:
            found[f"{quote(item.measurement.tool, _VERSION_CHARACTERS)} {version}"].append(item.client)
    return found


def listing(digests: Mapping[str, str]) -> str:
    """Return what `sha256sum` prints for files, by name, of those digests."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def _digest_of_all(answers: Iterable[Answer]) -> str | None:
    """Return the digest over all clients; None if one does not tell that of its output."""
    lines = list(_lines(answers))
    return sha256("".join(lines).encode()).hexdigest() if all(lines) else None


def _lines(answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        digest = answer.document.raw_sha256
        yield f"{digest}  client-{answer.client}\n" if len(digest) == _DIGEST_CHARACTERS else ""
