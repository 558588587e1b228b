"""Asking a cluster what it is, for the environment of the results."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from plimsoll.ceph.environment import Outputs
from plimsoll.ceph.pools import PoolDetail
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.plan.ceph import image_name
from plimsoll.plan.document import Plan

_Key = TypeVar("_Key")

_QUESTIONS = {
    "versions": ("versions",),
    "osd_metadata": ("osd", "metadata"),
    "osd_tree": ("osd", "tree"),
    "osd_df": ("osd", "df"),
    "osd_dump": ("osd", "dump"),
    "df_detail": ("df", "detail"),
    "pools": ("osd", "pool", "ls", "detail"),
    "crush_rules": ("osd", "crush", "rule", "dump"),
    "config_dump": ("config", "dump"),
}
"""Field of `Outputs` -> arguments of `ceph`."""

_AT_ONCE = 4
"""Each is an interpreter of its own, and the conductor has little memory."""

_ASKED_OSDS = 8
"""`config show-with-defaults` gives 2000 lines for each OSD; what differs from OSD to OSD is in `config dump` too."""


async def ask(commands: Commands, plan: Plan, pools: Iterable[PoolDetail], osds: int) -> Outputs:
    """Return what Ceph says of its daemons, its settings and the run's pools; what it refuses to say is left empty."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def answer(question: tuple[str, ...]) -> str:
        async with turn:
            return await _heard(commands.ceph(*question))

    async def answers(questions: Mapping[_Key, tuple[str, ...]]) -> dict[_Key, str]:
        return dict(zip(questions, await asyncio.gather(*map(answer, questions.values())), strict=True))

    profiles = sorted({pool.erasure_code_profile for pool in pools} - {""})
    asked = range(min(osds, _ASKED_OSDS))
    single, by_profile, by_osd = await asyncio.gather(
        answers(_QUESTIONS),
        answers({name: ("osd", "erasure-code-profile", "get", name) for name in profiles}),
        answers({number: ("config", "show-with-defaults", f"osd.{number}") for number in asked}),
    )
    return Outputs(**single, profiles=by_profile, configs=by_osd, image=await _image(commands, plan))


async def _image(commands: Commands, plan: Plan) -> str:
    """Return what Ceph says of one of the run's images, which are all alike."""
    if plan.ceph is None or not has_images(plan):
        return ""
    return await _heard(commands.rbd("info", f"{plan.ceph.pool}/{image_name(plan.run.uid, 0)}", "--format", "json"))


async def _heard(answer: Awaitable[str]) -> str:
    try:
        return await answer
    except CommandError:
        return ""


def has_images(plan: Plan) -> bool:
    """Tell whether each client has an RBD image of its own, through librbd."""
    return plan.volume is not None and plan.volume.access == "LibRBD"
