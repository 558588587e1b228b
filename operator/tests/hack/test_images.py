"""`hack/images.sh`, with a docker that only records what it is asked to do."""

import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import __version__

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "hack" / "images.sh"
REGISTRY = "registry.example.org/team"
FAKE_DOCKER = """#!/bin/sh
echo "$*" >> {calls}
echo "progress of docker"
[ "$1 {says}" != "push True" ] || echo "1.2: digest: sha256:$(echo "$2" | sha256sum | sed 's/ .*//') size: 1"
case "$1" in {failing}) echo "denied: no access" >&2; exit 1 ;; esac
"""


class Machine:
    """A PATH that has what the script needs, and maybe a docker."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "bin"
        self._path.mkdir()
        self._calls = directory / "calls"
        for program in ("bash", "cat", "dirname", "realpath", "sed", "sha256sum", "tee"):
            found = shutil.which(program)
            assert found is not None
            (self._path / program).symlink_to(found)

    def add_docker(self, *, failing: str = "none", says_digest: bool = True) -> None:
        docker = self._path / "docker"
        docker.write_text(FAKE_DOCKER.format(calls=self._calls, failing=failing, says=says_digest))
        docker.chmod(0o755)

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {name: value for name, value in os.environ.items() if name not in {"REGISTRY", "TAG", "PUSH"}}
        return subprocess.run(
            [str(SCRIPT)],
            env=known | {"PATH": str(self._path)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    @property
    def built(self) -> dict[str, str]:
        """Return target -> image."""
        builds = [re.search(r"^build .*--target (\S+) --tag (\S+) (\S+)$", call) for call in self.calls]
        found = [match.groups() for match in builds if match]
        assert all(context == str(ROOT) for _, _, context in found)
        return {target: image for target, image, _ in found}

    @property
    def pushed(self) -> list[str]:
        return [call.removeprefix("push ") for call in self.calls if call.startswith("push ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def values(answer: subprocess.CompletedProcess[str]) -> Any:
    assert answer.returncode == 0, answer.stderr
    return yaml.safe_load(answer.stdout)


def test_all_images_are_built_with_the_version_as_their_tag(machine: Machine) -> None:
    machine.add_docker()
    found = values(machine.run())
    assert machine.built == {
        "operator": f"plimsoll-operator:{__version__}",
        "runner": f"plimsoll-runner:{__version__}",
    }
    assert machine.pushed == []
    assert found == {
        "image": {"repository": "plimsoll-operator", "tag": __version__},
        "runner": {"image": {"repository": "plimsoll-runner", "tag": __version__}},
    }


def test_the_images_are_the_last_stages_of_the_dockerfile(machine: Machine) -> None:
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    used = {base for base, _ in stages} | set(re.findall(r"--from=(\S+)", (ROOT / "Dockerfile").read_text()))
    machine.add_docker()
    found = values(machine.run(KUBE_BURNER="1", TAG="7"))
    assert set(machine.built) == {name for _, name in stages} - used
    assert found["kubeBurner"]["image"] == {"repository": "plimsoll-kube-burner", "tag": "7"}


def test_the_image_of_kube_burner_is_built_on_request_only(machine: Machine) -> None:
    machine.add_docker()
    assert "kubeBurner" not in values(machine.run())
    assert set(machine.built) == {"operator", "runner"}


@pytest.mark.parametrize("registry", [REGISTRY, f"{REGISTRY}/"])
def test_images_are_pushed_and_the_values_name_them(machine: Machine, registry: str) -> None:
    machine.add_docker()
    found = values(machine.run(REGISTRY=registry, TAG="1.2", PUSH="1"))
    images = [f"{REGISTRY}/plimsoll-operator:1.2", f"{REGISTRY}/plimsoll-runner:1.2"]
    assert list(machine.built.values()) == images
    assert machine.pushed == images
    # By their digests, which whoever may push to the registry cannot give to another image.
    lines = [f"{image}\n".encode() for image in images]
    operator, runner = (f"sha256:{sha256(line).hexdigest()}" for line in lines)
    assert found["image"] == {"repository": f"{REGISTRY}/plimsoll-operator", "digest": operator}
    assert found["runner"]["image"] == {"repository": f"{REGISTRY}/plimsoll-runner", "digest": runner}


def test_an_image_without_a_known_digest_is_not_selected(machine: Machine) -> None:
    machine.add_docker(says_digest=False)
    answer = machine.run(REGISTRY=REGISTRY, PUSH="1")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "docker does not say what the digest of registry.example.org/team/plimsoll-operator" in answer.stderr


def test_a_tag_stays_text_in_the_values(machine: Machine) -> None:
    machine.add_docker()
    assert values(machine.run(TAG="1.10"))["image"]["tag"] == "1.10"


def test_values_are_those_of_the_chart(machine: Machine) -> None:
    machine.add_docker()
    found = values(machine.run())
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "values.yaml").read_text())
    assert found["image"].keys() <= chart["image"].keys()
    assert found["runner"]["image"].keys() <= chart["runner"]["image"].keys()


def test_another_base_image_is_passed_on(machine: Machine) -> None:
    machine.add_docker()
    values(machine.run(BASE_IMAGE="debian:mine"))
    assert all("--build-arg BASE_IMAGE=debian:mine " in call for call in machine.calls)


@pytest.mark.parametrize("failing", ["build", "push"])
def test_no_values_are_printed_for_images_that_are_not_there(machine: Machine, failing: str) -> None:
    machine.add_docker(failing=failing)
    answer = machine.run(REGISTRY=REGISTRY, PUSH="1")
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert "denied: no access" in answer.stderr


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"PUSH": "1"}, "PUSH=1 needs a registry: set REGISTRY"),
        ({"PUSH": "yes", "REGISTRY": REGISTRY}, "PUSH=yes is not understood: set PUSH=1"),
    ],
)
def test_what_cannot_be_pushed_is_not_built(machine: Machine, environment: dict[str, str], message: str) -> None:
    machine.add_docker()
    answer = machine.run(**environment)
    assert answer.returncode == 1
    assert message in answer.stderr
    assert machine.calls == []


def test_a_missing_docker_is_named(machine: Machine) -> None:
    answer = machine.run(REGISTRY=REGISTRY)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith("images.sh: docker is not on PATH: install Docker")
