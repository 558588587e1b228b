"""Write the parts of a release that need more than a shell: hack/release.sh calls each step by its name.

The environment has VERSION, REPOSITORY, COMMIT, BUILDER and SOURCE_DATE_EPOCH. All is written to the current directory.
"""

# ruff: noqa: INP001 - a script, run by path
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.parser import HeaderParser
from hashlib import file_digest
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from license_expression import get_spdx_licensing
from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    Package,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.write_anything import write_file

VERSION, REPOSITORY, COMMIT = (os.environ[name] for name in ("VERSION", "REPOSITORY", "COMMIT"))
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
TIME = datetime.fromtimestamp(EPOCH, UTC)
ROOT = Path(__file__).parent.parent
CHART = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())
DIGESTS = Path("digests.json")
"""The digests of images and chart by name, as a registry will have them."""

IMAGES = {"image": "plimsoll-operator", "runner": "plimsoll-runner"}
"""The names of the images by the section of the chart's values that selects each."""

OCI = "application/vnd.oci.image"
ANNOTATIONS = {
    "org.opencontainers.image.created": f"{TIME:%Y-%m-%dT%H:%M:%SZ}",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.revision": COMMIT,
    "org.opencontainers.image.source": CHART["home"],
    "org.opencontainers.image.version": VERSION,
}

# What differs between two builds of the same: logs, caches, backups of databases of packages and users, and an identity
# that systemd's package draws.
_VOLATILE = re.compile(
    r"(var/log|var/cache/(apt|debconf|ldconfig)|run|tmp)/.+|var/lib/dpkg/.+-old|etc/(\w+-|machine-id)"
)
_DISTRIBUTION = re.compile(r"opt/plimsoll/lib/python[\d.]+/site-packages/[^/]+\.dist-info/(METADATA|sboms/.+\.json)")
_PACKAGES = "var/lib/dpkg/status"


# -- images and chart as archives of OCI layouts, which `skopeo copy oci-archive:` reads


class Layout:
    """An OCI layout: its blobs are collected in a directory."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    def add(self, content: bytes | object, media_type: str) -> dict[str, Any]:
        """Add a blob, an object as JSON, and return its descriptor."""
        path = self.directory / "new"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode())
        return self._name(path, media_type)

    def _name(self, path: Path, media_type: str) -> dict[str, Any]:
        digest, size = digest_of(path), path.stat().st_size
        path.rename(self.directory / digest)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}

    def add_layer(self, layer: Path, metadata: dict[str, bytes]) -> tuple[dict[str, Any], str]:
        """Add a layer without what differs between builds; return its descriptor and the digest of its content.

        What says which packages it has is added to the metadata.
        """
        path = self.directory / "layer"
        with tarfile.open(layer) as old, tarfile.open(path, "w") as new:
            for member in old:
                name = member.name.removeprefix("./")
                if _VOLATILE.fullmatch(name):
                    continue
                member.mtime, member.uname, member.gname = min(int(member.mtime), EPOCH), "", ""
                member.pax_headers = {key: text for key, text in member.pax_headers.items() if not key.endswith("time")}
                new.addfile(member, old.extractfile(member) if member.isreg() else None)
                if content := (name == _PACKAGES or _DISTRIBUTION.fullmatch(name)) and old.extractfile(member):
                    metadata[name] = content.read()
        digest = digest_of(path)
        subprocess.run(["gzip", "--no-name", str(path)], check=True)
        return self._name(path.with_suffix(".gz"), f"{OCI}.layer.v1.tar+gzip"), f"sha256:{digest}"

    def write(self, name: str, descriptor: dict[str, Any]) -> None:
        """Write the archive of the layout."""
        named = descriptor | {"annotations": {"org.opencontainers.image.ref.name": VERSION}}
        with tarfile.open(f"{name}-{VERSION}.oci.tar", "w") as archive:
            _write_member(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
            _write_member(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
            for blob in sorted(self.directory.iterdir()):
                _write_member(archive, f"blobs/sha256/{blob.name}", blob.read_bytes())
        digests = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
        DIGESTS.write_text(json.dumps(digests | {name: descriptor["digest"]}, indent=2, sort_keys=True) + "\n")


def _write_member(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), EPOCH
    archive.addfile(member, BytesIO(content))


def image(name: str, *paths: str) -> None:
    """Write the archive of an image from its layout for each architecture, and an SBOM for each."""
    manifests = []
    with tempfile.TemporaryDirectory(dir="..") as directory:
        layout = Layout(directory)
        for path in map(Path, paths):
            (top,) = json.loads((path / "index.json").read_text())["manifests"]
            old = json.loads(_blob(path, top).read_text())
            config = json.loads(_blob(path, old["config"]).read_text())
            metadata: dict[str, bytes] = {}
            layers = [layout.add_layer(_blob(path, layer), metadata) for layer in old["layers"]]
            config["config"].pop("Labels", None)
            config["rootfs"] = {"type": "layers", "diff_ids": [content for _, content in layers]}
            config["created"] = ANNOTATIONS["org.opencontainers.image.created"]
            kept = ("architecture", "config", "created", "os", "rootfs", "variant")
            manifest = {
                "schemaVersion": 2,
                "mediaType": f"{OCI}.manifest.v1+json",
                "config": layout.add({key: config[key] for key in kept if key in config}, f"{OCI}.config.v1+json"),
                "layers": [descriptor for descriptor, _ in layers],
                "annotations": ANNOTATIONS,
            }
            platform = {key: config[key] for key in ("architecture", "os")}
            manifests.append(layout.add(manifest, f"{OCI}.manifest.v1+json") | {"platform": platform})
            sbom(f"{name}-{VERSION}-{config['architecture']}", manifests[-1]["digest"], metadata)
        index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests}
        layout.write(name, layout.add(index | {"annotations": ANNOTATIONS}, index["mediaType"]))


def _blob(layout: Path, descriptor: dict[str, Any]) -> Path:
    return layout / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")


def chart(archive: str) -> None:
    """Write the archive of the OCI layout of a packaged chart, as `helm push` would push it."""
    with tempfile.TemporaryDirectory(dir="..") as directory:
        layout, helm = Layout(directory), "application/vnd.cncf.helm"
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": layout.add(CHART, f"{helm}.config.v1+json"),
            "layers": [layout.add(Path(archive).read_bytes(), f"{helm}.chart.content.v1.tar+gzip")],
            "annotations": ANNOTATIONS,
        }
        layout.write("plimsoll", layout.add(manifest, f"{OCI}.manifest.v1+json"))


# -- what describes them


def pin(directory: str) -> None:
    """Have a chart select the images of this release."""
    values, metadata = Path(directory, "values.yaml"), Path(directory, "Chart.yaml")
    text, described = values.read_text(), metadata.read_text()
    for section, name in IMAGES.items():
        before, heading, after = text.partition(f"\n{section}:\n")
        after = after.replace('repository: ""', f"repository: {REPOSITORY}/{name}", 1)
        text = before + heading + after.replace('digest: ""', f'digest: "{_digest(name)}"', 1)
        described = described.replace(f"image: {name}:{VERSION}", f"image: {_reference(name)}")
    values.write_text(text)
    metadata.write_text(described)


def check_images(manifests: str) -> None:
    """Exit unless rendered manifests and the chart's list for Artifact Hub have exactly the images of this release."""
    text = Path(manifests).read_text()
    for name in IMAGES.values():
        selected = set(re.findall(rf"[\w./:-]*{name}[@:][\w:.-]+", text))
        if selected != {_reference(name)}:
            sys.exit(f"release.py: {manifests} selects {sorted(selected)} instead of {_reference(name)}")
    listed = sorted(entry["image"] for entry in yaml.safe_load(CHART["annotations"]["artifacthub.io/images"]))
    if listed != (expected := sorted(map(_reference, IMAGES.values()))):
        sys.exit(f"release.py: artifacthub.io/images of the chart has {listed} instead of {expected}")


def _reference(name: str) -> str:
    digest = _digest(name)
    return f"{REPOSITORY}/{name}" + (f"@{digest}" if digest else f":{VERSION}")


def _digest(name: str) -> str:
    """Return the digest of an image by the index of its archive, or nothing if it is not built."""
    path = Path(f"{name}-{VERSION}.oci.tar")
    if not path.exists():
        return ""
    with tarfile.open(path) as archive:
        (top,) = json.load(archive.extractfile("index.json"))["manifests"]
    return top["digest"]


def sbom(name: str, digest: str, metadata: Mapping[str, bytes]) -> None:
    """Write the SBOM of what is installed, by dpkg's database and the metadata of Python distributions."""
    top = Package("SPDXRef-Root", name, SpdxNoAssertion(), version=VERSION, files_analyzed=False)
    found = chain.from_iterable(_installed(path, data.decode()) for path, data in sorted(metadata.items()))
    packages = [*{package.spdx_id: package for package in found}.values()]
    info = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id="SPDXRef-DOCUMENT",
        name=name,
        document_namespace=uuid.uuid5(uuid.NAMESPACE_URL, f"{name}@{digest}").urn,
        creators=[Actor(ActorType.TOOL, f"plimsoll-release-{VERSION}")],
        created=TIME.replace(tzinfo=None),
    )
    relations = [Relationship(info.spdx_id, RelationshipType.DESCRIBES, top.spdx_id)]
    relations += [Relationship(top.spdx_id, RelationshipType.CONTAINS, each.spdx_id) for each in packages]
    document = Document(info, packages=[top, *packages], relationships=relations)
    write_file(document, f"{name}.spdx.json", validate=True)


def _installed(path: str, text: str) -> Iterator[Package]:
    """Yield the packages that a file of metadata names: dpkg's database, a distribution's, or what a wheel bundles."""
    if path.endswith(".json"):
        document = json.loads(text)
        if document.get("bomFormat") != "CycloneDX":
            sys.exit(f"release.py: {path} has another format than CycloneDX")
        for component in document.get("components", ()):
            locator = component["purl"].partition("?")[0]
            yield _package(locator, component["name"], component["version"])
    elif path == _PACKAGES:
        for fields in map(HeaderParser().parsestr, text.strip().split("\n\n")):
            if fields["Status"] == "install ok installed":
                name, version = fields["Package"], fields["Version"]
                yield _package(f"pkg:deb/debian/{name}@{version}", name, version)
    else:
        fields = HeaderParser().parsestr(text)
        name, version = fields["Name"], fields["Version"]
        locator = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
        yield _package(locator, name, version, fields["License-Expression"])


def _package(locator: str, name: str, version: str, declared: str | None = None) -> Package:
    locator = locator.replace("+", "%2B").replace("~", "%7E")
    return Package(
        f"SPDXRef-{re.sub(r'[^A-Za-z0-9.]', '-', locator.removeprefix('pkg:'))}",
        name,
        SpdxNoAssertion(),
        version=version,
        files_analyzed=False,
        license_declared=get_spdx_licensing().parse(declared) if declared else SpdxNoAssertion(),
        external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", locator)],
    )


def plugin_sbom(architecture: str, directory: str) -> None:
    """Write the SBOM of the kubectl plugin, whose distributions are in a directory."""
    name = f"kubectl-plimsoll-{VERSION}-linux-{architecture}"
    paths = [path for part in ("METADATA", "sboms/*.json") for path in Path(directory).glob(f"*.dist-info/{part}")]
    sbom(name, digest_of(Path(f"{name}.tar.gz")), {str(path): path.read_bytes() for path in paths})


def krew() -> None:
    """Write the manifest of the kubectl plugin for krew."""
    platforms = []
    for archive in sorted(Path().glob("kubectl-plimsoll-*.tar.gz")):
        _, _, architecture = archive.name.removesuffix(".tar.gz").rpartition("-")
        platform = {"selector": {"matchLabels": {"os": "linux", "arch": architecture}}}
        uri = f"{CHART['home']}/releases/download/v{VERSION}/{archive.name}"
        platforms.append(platform | {"uri": uri, "sha256": digest_of(archive), "bin": "kubectl-plimsoll"})
    spec = {
        "version": f"v{VERSION}",
        "homepage": CHART["home"],
        "shortDescription": "Benchmark Ceph and other storage",
        "description": f"{CHART['description']}.\n",
        "caveats": "Needs Python 3.11 to 3.14 as python3, and the operator of the same version in the cluster.\n",
        "platforms": platforms,
    }
    kind = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    manifest = kind | {"metadata": {"name": "plimsoll"}, "spec": spec}
    Path("plimsoll.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False, width=120))


def notes() -> None:
    """Write the version's section of the changelog, with links that lead to the files of its tag."""
    _, _, rest = (ROOT / "CHANGELOG.md").read_text().partition(f"\n## [{VERSION}] - ")
    section = rest.partition("\n## [")[0].partition("\n")[2].strip()
    linked = re.sub(r"\]\((?!https?:|#)", f"]({CHART['home']}/blob/v{VERSION}/", section)
    Path("RELEASE_NOTES.md").write_text(f"{linked}\n")


def provenance() -> None:
    """Write how all this was built, as an in-toto statement with the predicate SLSA provenance v1, and the sums."""
    sums = {path.name: digest_of(path) for path in sorted(Path().iterdir())}
    digests = json.loads(DIGESTS.read_text()).items()
    subjects = sums | {f"{REPOSITORY}/{name}": digest.removeprefix("sha256:") for name, digest in digests}
    source = {"uri": f"git+{CHART['home']}", "digest": {"gitCommit": COMMIT}}
    used = ("build.txt", "dev.txt", "plugin.txt", "release.txt", "runtime.txt")
    locks = [ROOT / "operator" / "requirements" / name for name in used]
    # The signed list of Debian's packages, if images were built.
    indices = {path.name: path.read_text().strip() for path in sorted(Path("..").glob("InRelease-*"))}
    definition = {
        "buildType": f"{CHART['home']}/blob/v{VERSION}/hack/release.sh",
        "externalParameters": {"version": VERSION, "repository": REPOSITORY},
        "resolvedDependencies": [
            source,
            *({"name": str(path.relative_to(ROOT)), "digest": {"sha256": digest_of(path)}} for path in locks),
            *({"name": name, "digest": {"sha256": digest}} for name, digest in indices.items()),
        ],
    }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": definition, "runDetails": {"builder": {"id": os.environ["BUILDER"]}}},
    }
    path = Path(f"plimsoll-{VERSION}.intoto.json")
    path.write_text(json.dumps(statement, indent=2) + "\n")
    sums[path.name] = digest_of(path)
    Path("SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    steps = (image, chart, pin, check_images, plugin_sbom, krew, notes, provenance)
    {step.__name__: step for step in steps}[sys.argv[1]](*sys.argv[2:])
