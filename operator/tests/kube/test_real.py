"""What only a real API server can show: refusals, rights, pages, new kinds, and its absence."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from plimsoll import __version__
from plimsoll.kube import client, port
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import (
    CredentialsError,
    ForbiddenError,
    InvalidError,
    Kind,
    TransientError,
    UnknownKindError,
    persist,
)
from support.apiserver import ApiServer, account_config

pytestmark = pytest.mark.crd

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
RUN = Kind(api_version="plimsoll.dev/v1alpha1", kind="BenchmarkRun")


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def definition(group: str) -> dict[str, Any]:
    """Return the definition of a kind `Pool` in a group."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"pools.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Pool", "plural": "pools", "singular": "pool"},
            "versions": [version],
        },
    }


async def test_a_refusal_says_why(real: AioKube, namespace: str) -> None:
    run = {"apiVersion": RUN.api_version, "kind": RUN.kind, "metadata": {"name": "r", "namespace": namespace}}
    with pytest.raises(InvalidError, match=rf"create BenchmarkRun {namespace}/r: .*spec: Required value"):
        await real.create(run)
    with pytest.raises(InvalidError, match=rf"create ConfigMap {namespace}/a: .*metadata.labels: Invalid value"):
        await real.create(
            config_map("a", namespace)
            | {"metadata": {"name": "a", "namespace": namespace, "labels": {"x": "not a label!"}}}
        )


async def test_a_dry_run_refuses_a_field_that_a_creation_drops(real: AioKube, namespace: str) -> None:
    wrong = {**config_map("a", namespace), "bogus": {"a": "b"}}
    with pytest.raises(InvalidError, match=r'dry run of ConfigMap .*strict decoding error: unknown field "bogus"'):
        await real.create(wrong, dry_run=True)
    assert await real.get(CONFIG_MAP, "a", namespace) is None
    assert await real.create(wrong)


async def test_without_rights(real: AioKube, apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    async with AioKube(kubeconfig=account_config(apiserver, tmp_path, namespace, "nobody")) as nobody:
        with pytest.raises(ForbiddenError, match=rf"get ConfigMap {namespace}/a: .*cannot get resource"):
            await nobody.get(CONFIG_MAP, "a", namespace)
        with pytest.raises(ForbiddenError):
            await nobody.create(config_map("a", namespace))


async def test_with_a_bad_token(apiserver: ApiServer, tmp_path: Path) -> None:
    config = apiserver.kubeconfig()
    config["users"][0]["user"] = {"token": "wrong"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    async with AioKube(kubeconfig=str(tmp_path / "config")) as kube:
        with pytest.raises(ForbiddenError, match="Unauthorized"):
            await kube.list(CONFIG_MAP)


async def test_a_list_goes_through_all_pages(real: AioKube, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.gather(*(real.create(config_map(f"c{number:02}", namespace)) for number in range(25)))
    monkeypatch.setattr(client, "PAGE_SIZE", 10)
    found = await real.list(CONFIG_MAP, namespace=namespace)
    assert [obj["metadata"]["name"] for obj in found] == [f"c{number:02}" for number in range(25)]


async def test_a_kind_may_come_and_go(
    real: AioKube, apiserver: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.05)
    group = f"{namespace}.example.com"
    pool = Kind(api_version=f"{group}/v1", kind="Pool")
    obj = {"apiVersion": pool.api_version, "kind": "Pool", "metadata": {"name": "p", "namespace": namespace}}

    async def becomes_unknown() -> None:
        while await real.list(pool, namespace=namespace) is not None:
            await asyncio.sleep(0.05)

    async def becomes_known() -> None:
        while True:
            try:
                await real.create(obj)
            except UnknownKindError:
                await asyncio.sleep(0.05)
            else:
                return

    with pytest.raises(UnknownKindError, match=f"look up Pool of {group}/v1"):
        await real.get(pool, "p", namespace)
    await asyncio.to_thread(apiserver.define, definition(group))
    async with asyncio.timeout(20):
        await becomes_known()
    assert await real.get(pool, "p", namespace)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.{group}"
    await asyncio.to_thread(apiserver.request, "DELETE", path)
    async with asyncio.timeout(20):
        with pytest.raises(UnknownKindError):
            await becomes_unknown()
    await asyncio.to_thread(apiserver.define, definition(group))
    async with asyncio.timeout(20):
        await becomes_known()


async def test_an_absence_is_transient(line: Any, line_config: str) -> None:
    async with AioKube(kubeconfig=line_config) as kube:
        assert await kube.list(CONFIG_MAP, namespace="default") is not None
        await line.cut()
        with pytest.raises(TransientError, match="list ConfigMap of default: "):
            await kube.list(CONFIG_MAP, namespace="default")
        asking = asyncio.create_task(persist(lambda: kube.list(CONFIG_MAP, namespace="default"), seconds=20))
        await asyncio.sleep(0.5)
        assert not asking.done()
        await line.mend()
        assert await asking is not None


async def test_a_kind_first_asked_for_in_an_absence_is_not_unknown(line: Any, line_config: str) -> None:
    async with AioKube(kubeconfig=line_config) as kube:
        await line.cut()
        with pytest.raises(TransientError):
            await kube.get(CONFIG_MAP, "a", "default")
        await line.mend()
        assert await kube.get(CONFIG_MAP, "none", "default") is None


@pytest.mark.fault(
    "API server",
    "No answer on an open connection",
    "at any request",
    ends="the request fails and is repeated",
    within="30 s",
)
async def test_silence_has_an_end(line: Any, line_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_TIMEOUT", aiohttp.ClientTimeout(total=0.3))
    monkeypatch.setattr(line, "_target", 9)  # nobody answers there: the line itself accepts and says nothing
    monkeypatch.setattr(line, "_carry", _swallow)
    await line.cut()
    await line.mend()
    async with AioKube(kubeconfig=line_config) as kube:
        with pytest.raises(TransientError, match=r"TimeoutError|timeout"):
            await kube.get(CONFIG_MAP, "a", "default")


async def _swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def test_nothing_is_left_in_files(kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    async with AioKube(kubeconfig=kubeconfig) as kube:
        assert await kube.list(RUN) is not None
    assert os.listdir(scratch) == []  # noqa: PTH208 - a list is what is compared


async def test_the_server_is_told_who_asks(kubeconfig: str) -> None:
    async with AioKube(kubeconfig=kubeconfig) as kube:
        assert kube._api.user_agent == f"plimsoll/{__version__}"


async def test_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CredentialsError, match="set KUBECONFIG"):
        async with AioKube(kubeconfig=str(tmp_path / "none")):
            pass
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(CredentialsError, match="token"):
        async with AioKube():
            pass
