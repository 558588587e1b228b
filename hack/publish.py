"""Publish what hack/release.sh built: images and chart, signed and attested, and the release of its tag on GitHub.

    python3 hack/publish.py DIST

The environment has REPOSITORY, as hack/release.sh got it, and GITHUB_REPOSITORY, GITHUB_REF_NAME (the tag), GITHUB_SHA
and GH_TOKEN, as in a workflow of GitHub. cosign, gh and skopeo are on PATH and logged in.

Nothing is pushed unless DIST is complete and was built for this version, repository and commit, the tag still is at
GITHUB_SHA and has no release, and the registry has nothing else under the version. The release starts as a draft, which
is published only if the tag has not moved by then. After a failure, delete the draft if there is one, and run it again
with the same DIST: it pushes what is still missing.
"""

# ruff: noqa: INP001 - a script, run by path
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NoReturn

IMAGES = ("plimsoll-operator", "plimsoll-runner")
CHART = "plimsoll"

TAG, COMMIT, PROJECT = (os.environ[name] for name in ("GITHUB_REF_NAME", "GITHUB_SHA", "GITHUB_REPOSITORY"))
REPOSITORY = os.environ["REPOSITORY"].removesuffix("/")
VERSION = TAG.removeprefix("v")

# What registries answer for a tag or a repository that does not exist; any other failure says nothing about it.
_ABSENT = re.compile(r"(manifest|name) unknown|StatusCode: 404")


@dataclass(frozen=True)
class Artifact:
    """An image or the chart in DIST."""

    name: str
    archive: Path
    digest: str
    platforms: dict[str, str]
    """Digests by architecture; none of a chart."""

    @property
    def tagged(self) -> str:
        return f"docker://{REPOSITORY}/{self.name}:{VERSION}"


def main() -> None:
    """Check everything, then publish it."""
    dist = Path(sys.argv[1])
    check_files(dist)
    artifacts = [read_artifact(dist, name) for name in (*IMAGES, CHART)]
    check_sboms(dist, artifacts)
    predicate = read_provenance(dist)
    check_commit()
    check_no_release()
    missing = [artifact for artifact in artifacts if not is_published(artifact)]
    for artifact in missing:
        run("skopeo", "copy", "--all", "--preserve-digests", f"oci-archive:{artifact.archive}", artifact.tagged)
    with tempfile.TemporaryDirectory() as directory:
        provenance = Path(directory, "provenance.json")
        provenance.write_text(json.dumps(predicate))
        for artifact in artifacts:
            sign(artifact, dist, provenance)
        # The sums name everything else.
        bundle = Path(directory, "SHA256SUMS.sigstore.json")
        run("cosign", "sign-blob", "--yes", "--bundle", str(bundle), str(dist / "SHA256SUMS"))
        files = [*map(str, sorted(dist.iterdir())), str(bundle)]
        notes = str(dist / "RELEASE_NOTES.md")
        check_commit()
        run("gh", "release", "create", TAG, "--repo", PROJECT, "--draft", "--verify-tag", "--notes-file", notes, *files)
        check_commit()
        run("gh", "release", "edit", TAG, "--repo", PROJECT, "--draft=false")


def check_files(dist: Path) -> None:
    """Exit unless the files are exactly those of SHA256SUMS, with their content."""
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = {path.name: digest_of(path) for path in dist.iterdir() if path.name != "SHA256SUMS"}
    different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if different:
        die(f"{', '.join(different)} in {dist}: missing, changed, or not in SHA256SUMS")


def read_artifact(dist: Path, name: str) -> Artifact:
    """Return an artifact by its archive, whose digest must be the one that chart and provenance name."""
    archive = dist / f"{name}-{VERSION}.oci.tar"
    with tarfile.open(archive) as layout:
        (top,) = json.load(layout.extractfile("index.json"))["manifests"]
        manifest = json.load(layout.extractfile(f"blobs/{top['digest'].replace(':', '/')}"))
    if top["digest"] != json.loads((dist / "digests.json").read_text())[name]:
        die(f"{archive} has {top['digest']}, unlike digests.json")
    platforms = {each["platform"]["architecture"]: each["digest"] for each in manifest.get("manifests", ())}
    return Artifact(name, archive, top["digest"], platforms)


def check_sboms(dist: Path, artifacts: list[Artifact]) -> None:
    """Exit unless each image is built for at least one architecture, and has an SBOM for each of them."""
    for artifact in artifacts:
        if artifact.name in IMAGES and not artifact.platforms:
            die(f"{artifact.archive} has no architectures")
        for architecture in artifact.platforms:
            if not sbom(dist, artifact, architecture).exists():
                die(f"{sbom(dist, artifact, architecture)} is missing")


def sbom(dist: Path, artifact: Artifact, architecture: str) -> Path:
    return dist / f"{artifact.name}-{VERSION}-{architecture}.spdx.json"


def read_provenance(dist: Path) -> dict[str, Any]:
    """Return the predicate of the provenance, which must name the version, the repository and the commit."""
    path = dist / f"plimsoll-{VERSION}.intoto.json"
    match json.loads(path.read_text()):
        case {
            "predicate": {
                "buildDefinition": {
                    "externalParameters": {"version": version, "repository": repository},
                    "resolvedDependencies": [{"digest": {"gitCommit": commit}}, *_],
                }
            } as predicate
        }:
            pass
        case _:
            die(f"{path} does not name a version, a repository and a commit")
    built = {"version": version, "repository": repository, "commit": commit}
    for name, expected in {"version": VERSION, "repository": REPOSITORY, "commit": COMMIT}.items():
        if built[name] != expected:
            die(f"{path} has the {name} {built[name]}, unlike {expected}: build it again")
    return predicate


def check_commit() -> None:
    """Exit unless the tag still is at the commit that was built."""
    commit = capture("gh", "api", f"repos/{PROJECT}/commits/tags/{TAG}", "--jq", ".sha").strip()
    if commit != COMMIT:
        die(f"the tag {TAG} is at {commit} now, and {COMMIT} was built: push a new version")


def check_no_release() -> None:
    """Exit if the tag has a release, or a draft of one."""
    if TAG in capture("gh", "api", "--paginate", f"repos/{PROJECT}/releases", "--jq", ".[].tag_name").splitlines():
        die(f"{TAG} has a release, or a draft of one: delete the draft, or push a new version")


def is_published(artifact: Artifact) -> bool:
    """Whether the registry has the artifact under the version; exit if it has another, or does not tell."""
    answer = subprocess.run(
        ["skopeo", "inspect", "--retry-times", "3", "--raw", artifact.tagged], capture_output=True, check=False
    )
    if answer.returncode:
        error = answer.stderr.decode(errors="replace").strip()
        if not _ABSENT.search(error):
            die(f"cannot tell whether {artifact.tagged} exists: {error}")
        return False
    digest = f"sha256:{sha256(answer.stdout).hexdigest()}"
    if digest != artifact.digest:
        die(f"{artifact.tagged} exists as {digest}, and {artifact.digest} was built: push a new version")
    return True


def sign(artifact: Artifact, dist: Path, provenance: Path) -> None:
    """Sign an artifact, and attest its provenance and, for each architecture, what is installed in it."""
    repository = f"{REPOSITORY}/{artifact.name}"
    top = f"{repository}@{artifact.digest}"
    run("cosign", "sign", "--yes", top)
    run("cosign", "attest", "--yes", "--type", "slsaprovenance1", "--predicate", str(provenance), top)
    for architecture, digest in artifact.platforms.items():
        predicate = str(sbom(dist, artifact, architecture))
        run("cosign", "attest", "--yes", "--type", "spdxjson", "--predicate", predicate, f"{repository}@{digest}")


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def capture(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def die(message: str) -> NoReturn:
    sys.exit(f"publish.py: {message}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        die(f"{' '.join(error.cmd[:2])} failed")
