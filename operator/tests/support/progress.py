"""The progress that a preparation reports, for tests of it."""

import asyncio


class RecordedProgress:
    """Records bytes and messages; `first` is set with the first report."""

    def __init__(self) -> None:
        self.reports: list[tuple[int, int, str]] = []
        self.first = asyncio.Event()

    def __call__(self, done: int, total: int, message: str = "") -> None:
        self.reports.append((done, total, message))
        self.first.set()

    @property
    def bytes(self) -> list[tuple[int, int]]:
        return [(done, total) for done, total, _ in self.reports]

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message in self.reports if message]
