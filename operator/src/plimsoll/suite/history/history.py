"""The rounds of a suite in their order, and which of them are the baseline of the next one.

A round is accepted unless it regressed, or cannot be compared with the accepted rounds, or lacks runs. A round that
measures something else than the rounds before (another digest) starts a new baseline, and so does one that the user
accepts. Slow drift stays within what is tolerated from round to round, so the first accepted rounds are pinned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.suite_status import PINNED_ROUNDS
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.suite.history.judging import RoundJudgement
from plimsoll.suite.history.rounds import MeasuredRound


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRound:
    """A round of the history.

    Attributes:
        regressed: whether a comparison found a regression; such a round counts only if the user accepted it.
        accepted: whether it is a part of the baseline.
        pinned: whether drift is tested against it.

    """

    measured: MeasuredRound
    regressed: bool = False
    accepted: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rounds of one suite, in their order."""

    rounds: tuple[JudgedRound, ...] = ()

    @property
    def accepted(self) -> Sequence[MeasuredRound]:
        """The accepted rounds."""
        return [one.measured for one in self.rounds if one.accepted]

    @property
    def pinned(self) -> Sequence[MeasuredRound]:
        """The pinned rounds."""
        return [one.measured for one in self.rounds if one.pinned]

    def extended(self, measured: MeasuredRound, judgements: Iterable[RoundJudgement]) -> "History":
        """Return the history with one more round, as the comparisons of the suite judged it.

        Without any comparison with accepted rounds, every complete round is accepted.
        """
        found = [*judgements]
        regressed = any(one.conclusion is Conclusion.REGRESSION for one in found)
        comparable = measured.is_complete and not any(measured.doubts.values()) and all(one.comparable for one in found)
        added = JudgedRound(measured=measured, regressed=regressed, accepted=comparable and not regressed)
        starts_anew = added.accepted and any(
            one.measured.digest != measured.digest for one in self.rounds if one.accepted
        )
        earlier = map(_dismissed, self.rounds) if starts_anew else self.rounds
        return History(rounds=_pinned((*earlier, added)))

    def accept(self, minute: int) -> "History":
        """Return the history whose baseline starts with the round of that minute, whatever it showed.

        Raises:
            ValueError: there is no such round, or it lacks runs.

        """
        index = next((index for index, one in enumerate(self.rounds) if one.measured.minute == minute), None)
        if index is None:
            known = ", ".join(str(one.measured.minute) for one in self.rounds) or "none"
            raise ValueError(f"there is no round {minute}; the rounds are {known}")
        if not self.rounds[index].measured.is_complete:
            raise ValueError(f"round {minute} lacks runs; complete it first")
        later = [replace(one, pinned=False) for one in self.rounds[index + 1 :]]
        chosen = replace(self.rounds[index], accepted=True, pinned=False)
        return History(rounds=_pinned((*map(_dismissed, self.rounds[:index]), chosen, *later)))


def _dismissed(one: JudgedRound) -> JudgedRound:
    return replace(one, accepted=False, pinned=False)


def _pinned(rounds: tuple[JudgedRound, ...]) -> tuple[JudgedRound, ...]:
    """Return the rounds with the first accepted ones pinned."""
    accepted = [one.measured.minute for one in rounds if one.accepted][:PINNED_ROUNDS]
    return tuple(replace(one, pinned=one.accepted and one.measured.minute in accepted) for one in rounds)
