"""What an administrator decides for all runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's configuration, as far as decisions depend on it.

    Attributes:
        runner_image: image of conductor and agents; frozen into the plan of each run.
        image_pull_policy: of their containers.
        port: on which a conductor listens.
        max_client_restarts: processes that a client may lose before the run is given up.
        conductor_restarts: pods that a conductor may lose.

    """

    runner_image: str
    image_pull_policy: str = "IfNotPresent"
    port: int = 8443
    max_client_restarts: int = 5
    conductor_restarts: int = 6
