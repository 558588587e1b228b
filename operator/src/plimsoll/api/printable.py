"""Texts of strangers without characters that a terminal obeys."""

from unicodedata import category


def printable_text(text: str) -> str:
    """Return a text with `?` for each character that a terminal may obey, or that hides or reorders the others.

    These are all that Unicode does not call graphic: control and format characters, surrogates, private and unassigned
    ones. Line feeds and tabs remain. The length does not change.
    """
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_printable_letter, line)) for line in lines)


def _printable_letter(letter: str) -> str:
    return letter if letter.isprintable() or letter == "\t" or category(letter) == "Zs" else "?"
