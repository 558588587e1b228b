"""Queries a cluster's versions and settings for the environment of the results."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from plimsoll.ceph.environment import Outputs
from plimsoll.ceph.pools import PoolDetail
from plimsoll.conductor.ceph.cli import CommandError, Commands, UnresponsiveError
from plimsoll.plan.ceph import image_name
from plimsoll.plan.document import Plan

_Key = TypeVar("_Key")

_QUESTIONS = {
    "versions": ("versions",),
    "osd_metadata": ("osd", "metadata"),
    "osd_tree": ("osd", "tree"),
    "osd_dump": ("osd", "dump"),
    "df_detail": ("df", "detail"),
    "pools": ("osd", "pool", "ls", "detail"),
    "crush_rules": ("osd", "crush", "rule", "dump"),
    "config_dump": ("config", "dump"),
}
"""Field of `Outputs` -> arguments of `ceph` for the monitors. The manager may hang alone, so it is asked last."""

_ASKED_OSDS = 8
"""`config show-with-defaults` prints 2000 lines per OSD; `config dump` also shows what differs between OSDs."""


async def ask(commands: Commands, plan: Plan, pools: Iterable[PoolDetail], osds: int) -> Outputs:
    """Return Ceph's description of its daemons, settings and the run's pools.

    Empty where Ceph refuses; after a command without an answer, no other is tried.
    """
    is_answering = True

    async def answer(question: tuple[str, ...]) -> str:
        nonlocal is_answering
        try:
            return await commands.ceph(*question) if is_answering else ""
        except UnresponsiveError:
            is_answering = False
        except CommandError:
            pass
        return ""

    async def answers(questions: Mapping[_Key, tuple[str, ...]]) -> dict[_Key, str]:
        return {key: await answer(question) for key, question in questions.items()}

    target = plan.ceph.file_system if plan.ceph else None
    profiles = sorted({pool.erasure_code_profile for pool in pools} - {""})
    asked = range(min(osds, _ASKED_OSDS))
    return Outputs(
        **await answers(_QUESTIONS),
        profiles=await answers({name: ("osd", "erasure-code-profile", "get", name) for name in profiles}),
        image=await _image(commands, plan),
        file_system=await answer(("fs", "get", target.name)) if target else "",
        osd_df=await answer(("osd", "df")),
        configs=await answers({number: ("config", "show-with-defaults", f"osd.{number}") for number in asked}),
    )


async def _image(commands: Commands, plan: Plan) -> str:
    """Return `rbd info` of the first image; all of the run's images are alike."""
    if plan.ceph is None or not has_images(plan):
        return ""
    image = f"{plan.ceph.pool}/{image_name(plan.run.uid, 0)}"
    try:
        return await commands.rbd("info", image, "--format", "json")
    except CommandError:
        return ""


def has_images(plan: Plan) -> bool:
    """Whether each client has its own RBD image, accessed through librbd."""
    return plan.volume is not None and plan.volume.access == "LibRBD"
