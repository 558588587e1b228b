"""The command line in a namespace of a real kube-apiserver, as users run it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from plimsoll.api.status import RunState
from support.accounts import account_config
from support.apiserver import ApiServer, Document
from support.repeated import result, steady, trials_of

GROUP = "/apis/plimsoll.dev/v1alpha1"
SECONDS = 60
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Bench:
    """A namespace with the run `nightly`, and the programs as installed; `uid` is the run's."""

    apiserver: ApiServer
    namespace: str
    directory: Path
    uid: str

    def path(self, plural: str, name: str = "", root: str = GROUP) -> str:
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def say(self, status: Document, plural: str = "benchmarkruns", name: str = "nightly") -> None:
        path = self.path(plural, f"{name}/status")
        self.apiserver.request("PATCH", path, {"status": status}, content=_MERGE).expect(200)

    def state(self, state: RunState) -> None:
        """Say what the conductor does."""
        path = self.path("configmaps", "nightly-state", "/api/v1")
        data = {"data": {"state.json": state.model_dump_json()}}
        self.apiserver.request("PATCH", path, data, content=_MERGE).expect(200)

    def record(self, rate: int) -> None:
        """Record the result of the run's point."""
        one = result(trials_of(steady(rate)), run="nightly").model_dump(mode="json", exclude_none=True)
        one["metadata"] |= {"namespace": self.namespace, "labels": self.labels}
        one["spec"]["runUid"] = self.uid
        del one["status"]["fingerprint"]
        self.apiserver.request("POST", self.path("benchmarkresults"), one).expect(201)
        display = {"iops": f"{rate} ± 2", "trials": "5/5", "operation": "read", "p99": "5.00 ms"}
        self.say({**one["status"], "display": display}, "benchmarkresults", "nightly-w-000")

    @property
    def labels(self) -> dict[str, str]:
        return {"plimsoll.dev/run": "nightly", "plimsoll.dev/run-uid": self.uid}

    def config(self, *, namespace: str | None = None, context: str = "test") -> str:
        """Write an administrator's kubeconfig whose one context has a namespace; returns its path."""
        document = self.apiserver.kubeconfig()
        inside = document["contexts"][0]["context"] | ({"namespace": namespace} if namespace else {})
        document |= {"contexts": [{"name": context, "context": inside}], "current-context": context}
        path = self.directory / f"config-{context}-{namespace}"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    def may(self, *rules: Document) -> str:
        """Return the kubeconfig of an account that may do this in the namespace."""
        rights = self.path("", root="/apis/rbac.authorization.k8s.io/v1").rstrip("/")
        role = {"metadata": {"name": "viewer"}, "rules": [*rules]}
        subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
        binding = {"metadata": {"name": "viewer"}, "roleRef": reference, "subjects": [subject]}
        self.apiserver.request("POST", f"{rights}/roles", role).expect(201)
        self.apiserver.request("POST", f"{rights}/rolebindings", binding).expect(201)
        return account_config(self.apiserver, self.directory, self.namespace, "viewer")

    def kubectl(self, *arguments: str, config: str) -> "subprocess.CompletedProcess[str]":
        """Run `kubectl plimsoll`, as kubectl finds it."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(config),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def command(self, *arguments: str) -> list[str]:
        return [f"{os.environ['PLIMSOLL_KUBE_BINARIES']}/kubectl", "plimsoll", *arguments]

    def environment(self, config: str) -> dict[str, str]:
        """Return an environment in which kubectl finds its plugin."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": config, "PATH": path, "HOME": str(self.directory)}

    @asynccontextmanager
    async def running(self, *arguments: str) -> "AsyncIterator[asyncio.subprocess.Process]":
        """Run `kubectl plimsoll` while the test goes on."""
        process = await asyncio.create_subprocess_exec(
            *self.command(*arguments),
            env=self.environment(self.config(namespace=self.namespace)),
            cwd=self.directory,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def line_with(process: asyncio.subprocess.Process, words: str) -> str:
    """Return the next line that contains these words."""
    assert process.stdout is not None
    passed = ""
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            if words in line:
                return line
            passed += line
    pytest.fail(f"no line with {words!r} in:\n{passed}")
