"""kube-burner: how fast a cluster binds claims and starts the pods that mount them."""

from plimsoll.tools.kube_burner.job import KubeBurnerParameters
from plimsoll.tools.kube_burner.tool import KUBE_BURNER

__all__ = ["KUBE_BURNER", "KubeBurnerParameters"]
