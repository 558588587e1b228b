"""What a trial's numbers were made by and from; part of a `BenchmarkResult`."""

from plimsoll.api.model import Model


class ToolUse(Model):
    """How the clients' tools were run in a trial, and what they left: evidence for an audit.

    Attributes:
        versions: of the tools that ran, such as `fio 3.39`; at most 8. More than one is a finding.
        argv: the command of one client; those of the others differ in paths, offsets and seeds. Left out of attempts
            that were replaced, and where the result would be too large.
        argv_client: whose command it is.
        raw_sha256: of everything that all tools wrote; absent if a client does not tell its own. `docs/trust.md` says
            how to make it again.

    """

    versions: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    argv_client: int
    raw_sha256: str | None = None
