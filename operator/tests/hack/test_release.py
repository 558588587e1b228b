"""What `hack/release.sh` refuses before it builds anything."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-28\n\n### Added\n\n- Everything.\n"
UNRELEASED = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n### Fixed\n\n- Something.\n")
PACKAGE, CHART, FLUX = "operator/pyproject.toml", "charts/plimsoll/Chart.yaml", "manifests/gitops/flux/plimsoll.yaml"
TREE = {
    PACKAGE: 'version = "1.2.3"\n',
    CHART: 'version: 1.2.3\nappVersion: "1.2.3"\n',
    FLUX: "    tag: v1.2.3\n",
    "CHANGELOG.md": CHANGELOG,
    "hack/release.sh": (ROOT / "hack" / "release.sh").read_text(),
}


def release(directory: Path, *options: str, **changed: str) -> str:
    """Return what the script says in a repository; it has nothing to build with, so it never succeeds."""
    for path, text in (TREE | changed).items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for arguments in (("init", "--quiet"), ("add", "."), (*identity, "commit", "--quiet", "--message", "test")):
        subprocess.run(
            ["git", *arguments], cwd=directory, env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"}, check=True
        )
    command = ["bash", "hack/release.sh", *options, "1.2.3", "registry.example.org/team"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({PACKAGE: 'version = "1.2.2"\n'}, "operator/pyproject.toml does not have version 1.2.3"),
        ({CHART: 'version: 1.2.3\nappVersion: "1.2.2"\n'}, 'does not have the line: appVersion: "1.2.3"'),
        ({FLUX: "    tag: v1.2.2\n"}, "manifests/gitops/flux/plimsoll.yaml does not have the line: tag: v1.2.3"),
        ({"CHANGELOG.md": "## [Unreleased]\n"}, "CHANGELOG.md does not have a section: ## [1.2.3] - "),
        ({"CHANGELOG.md": UNRELEASED}, "CHANGELOG.md still has entries in [Unreleased]"),
    ],
)
def test_a_tree_that_is_not_prepared_is_refused(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    assert message in release(tmp_path, **changed)


@pytest.mark.parametrize(("options", "changed"), [([], {}), (["--without-images"], {"CHANGELOG.md": UNRELEASED})])
def test_a_release_and_a_trial_of_unreleased_changes_begin(
    tmp_path: Path, options: list[str], changed: dict[str, str]
) -> None:
    assert "environment.sh" in release(tmp_path, *options, **changed)
