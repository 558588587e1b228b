"""bonnie++: the phases of a file system's work, one after the other, and the rate of each."""

from plimsoll.tools.bonnie.parameters import BonnieParameters
from plimsoll.tools.bonnie.tool import BONNIE

__all__ = ["BONNIE", "BonnieParameters"]
