"""Everything that a tool wrote: its digest, and a copy for whoever wants to check a number with other programs."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from plimsoll.api.state import TrialKey
from plimsoll.measure.provenance import listing
from plimsoll.measure.sample import ClientDocument


def raw_digest(directory: Path) -> str:
    """Return the SHA-256 of what `LC_ALL=C sha256sum *` prints in a directory."""
    digests = {path.name: _digest(path) for path in _files(directory)}
    return hashlib.sha256(listing(digests).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Where the raw output of a run's tools is kept: `POINT/pass-P-attempt-A/client-N`, with the document beside it."""

    directory: Path

    def keep(self, trial: TrialKey, document: ClientDocument, source: Path) -> None:
        """Keep what one client's tool wrote in a trial, and what the agent made of it.

        Raises:
            OSError: it cannot be written, or is there already.

        """
        attempt = self.directory / trial.point / f"pass-{trial.pass_number}-attempt-{trial.attempt}"
        kept = attempt / f"client-{document.client}"
        kept.mkdir(parents=True)
        for path in _files(source):
            shutil.copyfile(path, kept / path.name)
        (attempt / f"{kept.name}.json").write_text(document.model_dump_json(by_alias=True, exclude_none=True, indent=1))


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.is_file()]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
