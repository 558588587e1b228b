"""When Rook rotates a user's key, and what it then reports about it."""

from kube import Object

_UNINITIALIZED = "Uninitialized"
UNINITIALIZED: Object = {"keyCephVersion": _UNINITIALIZED}
"""`status.cephx` before there is a key."""


def is_due(wanted: Object, reported: Object) -> bool:
    """Whether an existing key is to be replaced, by `security.cephx` and `status.cephx` of an object.

    The policy `KeyGeneration` replaces it for a higher generation, and for another type.
    """
    if wanted.get("keyRotationPolicy") != "KeyGeneration" or reported["keyCephVersion"] == _UNINITIALIZED:
        return False
    is_of_another_type = "keyType" in wanted and wanted["keyType"] != reported.get("keyType")
    return is_of_another_type or bool(wanted.get("keyGeneration", 0) > reported.get("keyGeneration", 0))


def report(wanted: Object, reported: Object, *, version: str, rotated: bool) -> Object:
    """Return `status.cephx` of an object whose key exists, `version` being Ceph's: `20.2.4-0`.

    Of a key that it did not make now, Rook repeats what it reported before. It reports the type that was asked for, and
    none otherwise.
    """
    is_new = reported["keyCephVersion"] == _UNINITIALIZED
    if not is_new and not rotated:
        return reported
    generation = 1 if is_new else reported.get("keyGeneration", 0) + 1
    if wanted.get("keyRotationPolicy") == "KeyGeneration":
        generation = max(generation, wanted.get("keyGeneration", 0))
    asked = {"keyType": wanted["keyType"]} if "keyType" in wanted else {}
    return {"keyCephVersion": version, "keyGeneration": generation} | asked
