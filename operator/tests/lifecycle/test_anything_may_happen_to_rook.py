"""The same of runs on a Rook cluster, to which things happen as well; nothing of them is left there either."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from lifecycle.test_anything_may_happen import Anything
from plimsoll.lifecycle import naming
from support.pretend_cluster import label
from support.pretend_rook import ROOK
from support.pretend_world import CLAIMS, DISTURBED, ERASURE_CODED, FILE_SYSTEM, LIBRBD, SHARED

pytestmark = pytest.mark.timeout(400)

STORIES = ("", "CephBlockPool failed", "CephBlockPool stuck", "CephBlockPool while Rook was restarted")


class AnythingOnRook(Anything):
    """Users, machines, programs and Rook doing what they do, at any time."""

    storages = (
        {"storage": {"rook": ROOK, "volume": LIBRBD}, **DISTURBED},
        {"storage": {"rook": ERASURE_CODED, "volume": CLAIMS}},
        {"storage": {"rook": FILE_SYSTEM, "volume": SHARED}, **DISTURBED},
        {"storage": {"rook": ROOK}},
        {},
    )

    @rule(down=st.booleans())
    def stop_or_start_rook(self, *, down: bool) -> None:
        self.world.rook.knobs.down = down

    @rule(story=st.sampled_from(STORIES))
    def set_pools(self, story: str) -> None:
        self.world.rook.knobs.pools = story

    @rule(words=st.sampled_from(["", "image still has watchers"]))
    def set_teardown(self, words: str) -> None:
        self.world.rook.knobs.unclean = words

    @rule(foreign=st.booleans())
    def hold_pools(self, *, foreign: bool) -> None:
        self.world.rook.knobs.foreign_images = foreign

    @rule(inactive=st.booleans())
    def lose_or_find_osds(self, *, inactive: bool) -> None:
        self.world.rook.knobs.inactive = inactive

    @rule(number=st.integers(0, 5))
    def rotate_a_key(self, number: int) -> None:
        users = self.world.cluster.kube.objects("CephClient")
        if number < len(users):
            self.world.rook.rotate_key(dict(users[number]))

    @rule(number=st.integers(0, 5), kind=st.sampled_from(["CephBlockPool", "StorageClass", "ConfigMap"]))
    def delete_storage(self, number: int, kind: str) -> None:
        """Somebody deletes an object of a run that is elsewhere."""
        objects = [obj for obj in self.world.cluster.kube.objects(kind) if label(obj, naming.LABEL_RUN_UID)]
        if number < len(objects):
            self.world.cluster.delete(objects[number])

    def _come_to_an_end(self) -> None:
        knobs = self.world.rook.knobs
        knobs.down, knobs.unclean, knobs.foreign_images, knobs.inactive = False, "", False, False
        super()._come_to_an_end()


TestAnythingOnRook = AnythingOnRook.TestCase
TestAnythingOnRook.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
