"""The tools and the raw output behind a trial's numbers; part of a `BenchmarkResult`."""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Count, Model
from plimsoll.api.schema import ServerOnly

Sha256 = Annotated[str, ServerOnly(max_length=64, pattern=r"^[0-9a-f]{64}$")]


class ToolUse(Model):
    """The tools of the clients, their commands and their output; for an audit.

    Attributes:
        versions: The tools with their versions. More than one is a finding.
        argv: The command of one client. Empty for a replaced attempt, and if the result would be too large.
        argv_client: Number of that client. The commands of other clients differ in paths, offsets and seeds.
        raw_sha256: SHA-256 of the raw output of all clients' tools. Absent if a client does not report its digest.

    """

    versions: Annotated[
        tuple[Annotated[str, Field(description="A tool and its version."), ServerOnly(max_length=256)], ...],
        ServerOnly(max_length=8),
    ] = ()
    argv: Annotated[
        tuple[Annotated[str, Field(description="One argument."), ServerOnly(max_length=512)], ...],
        ServerOnly(max_length=128),
    ] = ()
    argv_client: Count
    raw_sha256: Sha256 | None = None  # docs/trust.md describes how to verify it
