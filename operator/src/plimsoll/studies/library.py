"""The studies in this package."""

from functools import cache
from importlib.resources import files

from plimsoll.studies.model import Study, parse_study

STUDY_NAMES = ("kit", "ornl", "utsa", "ctu", "blog")


@cache
def load_study(name: str) -> Study:
    """Return one of `STUDY_NAMES`; FileNotFoundError if there is no such study."""
    return parse_study((files("plimsoll.studies") / "data" / f"{name}.yaml").read_text("utf-8"))


def load_studies() -> tuple[Study, ...]:
    return tuple(map(load_study, STUDY_NAMES))
