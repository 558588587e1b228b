"""`hack/publish.py`, with programs that record how they are called, and answer as a registry and GitHub do."""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REPOSITORY = "registry.example.org/team"
ARCHITECTURES = ("amd64", "arm64")
NAMES = ("plimsoll-operator", "plimsoll-runner", "plimsoll")

# What they print is in files: the tag's commit, the releases, and the manifests in the registry by name. The start of a
# command is in `failing` if it fails, and in `moving` if the tag moves while it runs.
PROGRAM = """#!/bin/sh
state={state}
echo "$(basename "$0") $*" >> $state/calls
case "$(basename "$0") $*" in
    "gh api repos/owner/project/commits/tags/v1.2.3 "*) cat $state/commit ;;
    "gh api --paginate repos/owner/project/releases "*) cat $state/releases ;;
    "skopeo inspect "*)
        tagged=${{5#docker://registry.example.org/team/}}
        cat "$state/registry/${{tagged%:1.2.3}}" 2> /dev/null || {{ cat $state/error >&2; exit 1; }} ;;
    $(cat $state/failing)*) exit 1 ;;
    $(cat $state/moving)*) echo def > $state/commit ;;
esac
"""


def digest_of(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


def manifest_of(name: str) -> bytes:
    platforms = [
        {"digest": digest_of(f"{name} {each}".encode()), "platform": {"architecture": each, "os": "linux"}}
        for each in ARCHITECTURES
    ]
    return json.dumps({"layers": ["chart"]} if name == "plimsoll" else {"manifests": platforms}).encode()


class Publication:
    """What was built for v1.2.3, and where it is published."""

    def __init__(self, directory: Path) -> None:
        self.dist, self.state, self._path = (directory / name for name in ("dist", "state", "bin"))
        for each in (self.dist, self._path, self.state, self.state / "registry"):
            each.mkdir()
        (self.state / "commit").write_text("abc\n")
        (self.state / "releases").write_text("v1.2.2\n")
        (self.state / "failing").write_text("nothing")
        (self.state / "moving").write_text("nothing")
        (self.state / "error").write_text("reading manifest 1.2.3: manifest unknown\n")
        for program in ("cosign", "gh", "skopeo"):
            (self._path / program).write_text(PROGRAM.format(state=self.state))
            (self._path / program).chmod(0o755)
        self._build()

    def _build(self) -> None:
        for name in NAMES:
            manifest = manifest_of(name)
            index = json.dumps({"manifests": [{"digest": digest_of(manifest)}]}).encode()
            with tarfile.open(self.dist / f"{name}-1.2.3.oci.tar", "w") as archive:
                for path, content in (
                    ("index.json", index),
                    (f"blobs/{digest_of(manifest).replace(':', '/')}", manifest),
                ):
                    member = tarfile.TarInfo(path)
                    member.size = len(content)
                    archive.addfile(member, BytesIO(content))
        for name in NAMES[:2]:
            for architecture in ARCHITECTURES:
                (self.dist / f"{name}-1.2.3-{architecture}.spdx.json").write_text("{}")
        digests = {name: digest_of(manifest_of(name)) for name in NAMES}
        (self.dist / "digests.json").write_text(json.dumps(digests))
        (self.dist / "RELEASE_NOTES.md").write_text("Everything is new.\n")
        self.write_provenance()

    def write_provenance(self, version: str = "1.2.3", repository: str = REPOSITORY, commit: str = "abc") -> None:
        definition = {
            "externalParameters": {"version": version, "repository": repository},
            "resolvedDependencies": [{"digest": {"gitCommit": commit}}, {"digest": {"sha256": "0"}}],
        }
        self.write_statement({"predicate": {"buildDefinition": definition}})

    def write_statement(self, statement: object) -> None:
        (self.dist / "plimsoll-1.2.3.intoto.json").write_text(json.dumps(statement))
        self.sum_files()

    def sum_files(self) -> None:
        sums = self.dist / "SHA256SUMS"
        sums.unlink(missing_ok=True)
        lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(self.dist.iterdir())]
        sums.write_text("".join(lines))

    def push(self, name: str, manifest: bytes) -> None:
        (self.state / "registry" / name).write_bytes(manifest)

    def run(self, repository: str = REPOSITORY) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PATH": f"{self._path}:{os.environ['PATH']}",
            "REPOSITORY": repository,
            "GITHUB_REPOSITORY": "owner/project",
            "GITHUB_REF_NAME": "v1.2.3",
            "GITHUB_SHA": "abc",
        }
        command = [sys.executable, str(ROOT / "hack" / "publish.py"), str(self.dist)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def calls(self, start: str = "") -> list[str]:
        path = self.state / "calls"
        return [call for call in path.read_text().splitlines() if call.startswith(start)] if path.exists() else []

    @property
    def pushed(self) -> list[str]:
        return [call.rpartition(" ")[2] for call in self.calls("skopeo copy ")]

    @property
    def changes(self) -> list[str]:
        return [call for call in self.calls() if not call.startswith(("skopeo inspect ", "gh api "))]


@pytest.fixture
def publication(tmp_path: Path) -> Publication:
    return Publication(tmp_path)


@pytest.mark.parametrize("repository", [REPOSITORY, f"{REPOSITORY}/"])
def test_everything_is_pushed_signed_and_attested_before_the_release(publication: Publication, repository: str) -> None:
    answer = publication.run(repository)
    assert answer.returncode == 0, answer.stderr
    assert publication.pushed == [f"docker://{REPOSITORY}/{name}:1.2.3" for name in NAMES]
    digests = {name: f"{REPOSITORY}/{name}@{digest_of(manifest_of(name))}" for name in NAMES}
    assert publication.calls("cosign sign ") == [f"cosign sign --yes {digests[name]}" for name in NAMES]
    attested = [call.split()[4:] for call in publication.calls("cosign attest ")]
    assert [call[-1] for call in attested if call[0] == "slsaprovenance1"] == list(digests.values())
    assert [call[-2:] for call in attested if call[0] == "spdxjson"] == [
        [
            str(publication.dist / f"{name}-1.2.3-{architecture}.spdx.json"),
            f"{REPOSITORY}/{name}@{digest_of(f'{name} {architecture}'.encode())}",
        ]
        for name in NAMES[:2]
        for architecture in ARCHITECTURES
    ]
    create, publish = publication.changes[-2:]
    assert create.startswith("gh release create v1.2.3 --repo owner/project --draft --verify-tag ")
    assert {path.name for path in publication.dist.iterdir()} | {"SHA256SUMS.sigstore.json"} == {
        Path(file).name for file in create.partition("RELEASE_NOTES.md ")[2].split()
    }
    assert publish == "gh release edit v1.2.3 --repo owner/project --draft=false"


def test_after_a_failure_only_what_is_missing_is_pushed(publication: Publication) -> None:
    (publication.state / "failing").write_text("cosign sign ")
    answer = publication.run()
    assert (answer.returncode, answer.stderr) == (1, "publish.py: cosign sign failed\n")
    assert publication.calls("gh release ") == []
    (publication.state / "calls").unlink()
    (publication.state / "failing").write_text("nothing")
    publication.push("plimsoll-operator", manifest_of("plimsoll-operator"))
    assert publication.run().returncode == 0
    assert publication.pushed == [f"docker://{REPOSITORY}/{name}:1.2.3" for name in NAMES[1:]]
    assert len(publication.calls("cosign sign ")) == 3
    assert len(publication.calls("gh release ")) == 2


@pytest.mark.parametrize("last", ["cosign sign-blob ", "gh release create "])
def test_a_tag_that_moves_while_publishing_gets_no_release(publication: Publication, last: str) -> None:
    (publication.state / "moving").write_text(last)
    answer = publication.run()
    assert answer.returncode == 1
    assert "the tag v1.2.3 is at def now, and abc was built" in answer.stderr
    assert publication.changes[-1].startswith(last)


def test_after_a_failure_with_a_draft_it_continues_once_the_draft_is_deleted(publication: Publication) -> None:
    (publication.state / "failing").write_text("gh release edit ")
    answer = publication.run()
    assert (answer.returncode, answer.stderr) == (1, "publish.py: gh release failed\n")
    (publication.state / "failing").write_text("nothing")
    for name in NAMES:
        publication.push(name, manifest_of(name))
    (publication.state / "releases").write_text("v1.2.3\nv1.2.2\n")
    assert "delete the draft" in publication.run().stderr
    (publication.state / "releases").write_text("v1.2.2\n")
    (publication.state / "calls").unlink()
    assert publication.run().returncode == 0
    assert publication.pushed == []
    assert publication.changes[-1].startswith("gh release edit ")


def change_file(publication: Publication) -> None:
    (publication.dist / "RELEASE_NOTES.md").write_text("Nothing is new.\n")


def add_file(publication: Publication) -> None:
    (publication.dist / "extra").touch()


def remove_file(publication: Publication) -> None:
    (publication.dist / "RELEASE_NOTES.md").unlink()


def omit_sbom(publication: Publication) -> None:
    (publication.dist / "plimsoll-runner-1.2.3-arm64.spdx.json").unlink()
    publication.sum_files()


def build_image_for_no_architecture(publication: Publication) -> None:
    chart = (publication.dist / "plimsoll-1.2.3.oci.tar").read_bytes()
    (publication.dist / "plimsoll-operator-1.2.3.oci.tar").write_bytes(chart)
    digests = json.loads((publication.dist / "digests.json").read_text())
    (publication.dist / "digests.json").write_text(json.dumps(digests | {"plimsoll-operator": digests["plimsoll"]}))
    publication.sum_files()


def name_another_digest(publication: Publication) -> None:
    (publication.dist / "digests.json").write_text(json.dumps(dict.fromkeys(NAMES, "sha256:0")))
    publication.sum_files()


def build_another_version(publication: Publication) -> None:
    publication.write_provenance(version="1.2.4")


def build_for_another_repository(publication: Publication) -> None:
    publication.write_provenance(repository="registry.example.org/other")


def build_another_commit(publication: Publication) -> None:
    publication.write_provenance(commit="def")


def omit_commit(publication: Publication) -> None:
    publication.write_statement({"predicate": {"buildDefinition": {"resolvedDependencies": []}}})


def move_tag(publication: Publication) -> None:
    (publication.state / "commit").write_text("def\n")


def release_before(publication: Publication) -> None:
    (publication.state / "releases").write_text("v1.2.3\nv1.2.2\n")


def push_other_chart(publication: Publication) -> None:
    publication.push("plimsoll", b"{}")


def deny_access(publication: Publication) -> None:
    (publication.state / "error").write_text("unauthorized: authentication required")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (change_file, "RELEASE_NOTES.md in "),
        (add_file, "extra in "),
        (remove_file, "RELEASE_NOTES.md in "),
        (omit_sbom, "plimsoll-runner-1.2.3-arm64.spdx.json is missing"),
        (build_image_for_no_architecture, "plimsoll-operator-1.2.3.oci.tar has no architectures"),
        (name_another_digest, "unlike digests.json"),
        (build_another_version, "1.2.3.intoto.json has the version 1.2.4, unlike 1.2.3"),
        (build_for_another_repository, f"has the repository registry.example.org/other, unlike {REPOSITORY}"),
        (build_another_commit, "has the commit def, unlike abc"),
        (omit_commit, "does not name a version, a repository and a commit"),
        (move_tag, "the tag v1.2.3 is at def now, and abc was built"),
        (release_before, "v1.2.3 has a release"),
        (push_other_chart, f"docker://{REPOSITORY}/plimsoll:1.2.3 exists as {digest_of(b'{}')}"),
        (
            deny_access,
            "cannot tell whether docker://registry.example.org/team/plimsoll-operator:1.2.3 exists: unauthorized",
        ),
    ],
)
def test_nothing_is_pushed_if_something_is_wrong(
    publication: Publication, spoil: Callable[[Publication], None], message: str
) -> None:
    spoil(publication)
    answer = publication.run()
    assert answer.returncode == 1
    assert message in answer.stderr
    assert publication.changes == []
