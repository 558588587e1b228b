"""Write one OCI archive with the images a locally assembled node starts with.

usage: images.py PROGRAMS TOOLS_TAR ARCHIVE

Kubernetes' images carry the names kubeadm asks for, with our contents. Layers are compressed and stored once: every
node holds its own copy of the archive.
"""

# ruff: noqa: INP001 - a script, run by path
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

TOOLS = "localhost/plimsoll/tools:1"
VOLUMES = "localhost/plimsoll/volumes:1"
PROGRAM_PATHS = {"coredns": "/coredns", "pause": "/pause"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """A compressed layer; `diff_id` identifies its uncompressed contents."""

    blob: bytes
    diff_id: str


@dataclass(frozen=True)
class Image:
    """An image to write."""

    reference: str
    layers: list[Layer]
    entrypoint: list[str]


def digest(data: bytes) -> str:
    """Return the digest as OCI writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(tar: bytes) -> Layer:
    """Compress a tar archive."""
    return Layer(gzip.compress(tar, compresslevel=1, mtime=0), digest(tar))


def program_layer(source: Path, target: str) -> Layer:
    """Make a layer of one program and a /tmp."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        directory = tarfile.TarInfo("tmp")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(directory)
        file = tarfile.TarInfo(target.lstrip("/"))
        file.mode, file.size = 0o755, source.stat().st_size
        with source.open("rb") as stream:
            tar.addfile(file, stream)
    return layer(buffer.getvalue())


def images(programs: Path, tools: Layer) -> list[Image]:
    """List what a node starts with."""
    version = os.environ["KUBERNETES_VERSION"]
    command = [str(programs / "kubeadm"), "config", "images", "list", "--kubernetes-version", version]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    found = [Image(TOOLS, [tools], [])]
    for reference in [*listed, VOLUMES]:
        name = reference.rsplit("/", 1)[1].split(":")[0]
        path = PROGRAM_PATHS.get(name, f"/usr/local/bin/{name}")
        own = program_layer(programs / name, path)
        found.append(Image(reference, [tools, own] if name == "kube-proxy" else [own], [path]))
    return found


class Archive:
    """An OCI image layout in a tar archive."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w")  # noqa: SIM115 - closed by `close`
        self._written: set[str] = set()
        self._index: list[dict[str, object]] = []

    def _file(self, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        self._tar.addfile(info, io.BytesIO(data))

    def _blob(self, kind: str, data: bytes) -> dict[str, object]:
        name = digest(data)
        if name not in self._written:
            self._written.add(name)
            self._file("blobs/sha256/" + name.removeprefix("sha256:"), data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": name, "size": len(data)}

    def add(self, image: Image) -> None:
        """Write an image, except for layers that are there already."""
        target = {"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux"}
        settings = {
            "Entrypoint": image.entrypoint or None,
            # Memory is plentiful, processors are not: collect garbage a quarter as often.
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GOGC=400"],
        }
        config = {
            **target,
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in image.layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self._blob("config.v1+json", json.dumps(config).encode()),
            "layers": [self._blob("layer.v1.tar+gzip", one.blob) for one in image.layers],
        }
        entry = self._blob("manifest.v1+json", json.dumps(manifest).encode())
        names = {"io.containerd.image.name": image.reference, "org.opencontainers.image.ref.name": image.reference}
        self._index.append({**entry, "platform": target, "annotations": names})

    def close(self) -> None:
        """Write what names the images, and end the archive."""
        self._file("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        self._file("index.json", json.dumps({"schemaVersion": 2, "manifests": self._index}).encode())
        self._tar.close()


def main(programs: str, tools: str, target: str) -> None:
    """Write the archive."""
    archive = Archive(Path(target))
    for image in images(Path(programs), layer(Path(tools).read_bytes())):
        archive.add(image)
    archive.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
