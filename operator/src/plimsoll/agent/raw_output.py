"""A tool's raw output: its digest, and a copy with which users can verify the numbers."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from plimsoll.api.state import TrialKey
from plimsoll.measure.intake import listing
from plimsoll.measure.sample import ClientDocument


def raw_digest(directory: Path) -> str:
    """Return the SHA-256 of the output of `LC_ALL=C sha256sum *` in a directory."""
    digests = {path.name: _digest(path) for path in _files(directory)}
    return hashlib.sha256(listing(digests).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive of a run's raw output: `POINT/pass-P-attempt-A/client-N`, and the client's document beside it.

    Later rounds of a trial are in `client-N-round-R`.
    """

    directory: Path

    def keep(self, trial: TrialKey, document: ClientDocument, source: Path, *, round_number: int = 0) -> None:
        """Store one client's raw output and document of a round; OSError if they exist or cannot be written."""
        attempt = self.directory / trial.point / f"pass-{trial.pass_number}-attempt-{trial.attempt}"
        kept = attempt / (f"client-{document.client}" + (f"-round-{round_number}" if round_number else ""))
        kept.mkdir(parents=True)
        for path in _files(source):
            shutil.copyfile(path, kept / path.name)
        (attempt / f"{kept.name}.json").write_text(document.model_dump_json(by_alias=True, exclude_none=True, indent=1))


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.is_file()]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
