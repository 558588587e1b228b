"""A suite in a Git repository of the cluster, which Flux applies as the guide describes."""

import json
from typing import Any

import yaml

from suites import Suite
from support import ROOT, Cluster

GITOPS = ROOT / "manifests" / "gitops"
NAMESPACE = "flux-system"
"""The namespace of Flux and of the Git server."""

COMMIT = """
mkdir -p "/data/$1/suite" && cd "/data/$1" && git init --quiet
printf %s "$2" > suite/suite.yaml && printf %s "$3" > suite/kustomization.yaml
git add --all && git commit --quiet --message 'Another state' && git rev-parse HEAD
"""


class SuiteInGit(Suite):
    """A suite that is changed by commits."""

    def __init__(self, cluster: Cluster, manifest: dict[str, Any]) -> None:
        """Commit the suite, and apply the sample without what it says about long rounds and about the operator."""
        super().__init__(cluster, manifest["metadata"]["name"], manifest["metadata"]["namespace"])
        self._manifest = manifest
        self._commit()
        source, kustomization = yaml.safe_load_all((GITOPS / "flux" / "suite.yaml").read_text())
        source["spec"] |= {"url": f"http://git.{NAMESPACE}/{self.namespace}", "interval": "3s"}
        kustomization["spec"] |= {"timeout": "10m"}
        del kustomization["spec"]["dependsOn"]
        for document in (source, kustomization):
            document["metadata"]["namespace"] = self.namespace
            cluster.apply(document)

    def request(self, text: str) -> dict[str, Any]:
        """Commit a request, and return its round; Flux decides about the commit after it, and as its verdict says.

        An Inconclusive round changes nothing: Flux goes on failing after a regression, and passes otherwise.
        """
        before = len(self.rounds)
        ready = self._until_decided(self._commit(commonAnnotations={"plimsoll.dev/request-round": text}))
        ended = self.until_rounds(before + 1, seconds=1)
        has_regressed = self.condition("Regressed")["status"] == "True"
        passed = ended["verdict"] in {"NoRegression", "Inconclusive"} and not has_regressed
        assert ready["status"] == str(passed), f"{ready}\n{self.diagnosis()}"
        return ended

    def remove(self) -> None:
        """Commit the removal of the suite, and return once Flux has deleted it."""
        ready = self._until_decided(self._commit(resources=[]))
        assert ready["status"] == "True", ready

    @property
    def ready(self) -> dict[str, str]:
        """The condition Ready of the Kustomization; an empty one if it does not exist."""
        return _ready(self._kustomization)

    @property
    def _kustomization(self) -> dict[str, Any]:
        """The status of the Kustomization."""
        kustomization = self._cluster.object("kustomizations", "storage-benchmarks", self.namespace)
        status: dict[str, Any] = kustomization.get("status", {})
        return status

    def _commit(self, **changes: Any) -> str:
        """Commit the suite with changes of the sample's kustomization.yaml; return the revision as Flux names it."""
        sample = yaml.safe_load((GITOPS / "suite" / "kustomization.yaml").read_text())
        kustomization = json.dumps(sample | {"namespace": self.namespace} | changes)
        command = ("sh", "-ec", COMMIT, "commit", self.namespace, json.dumps(self._manifest), kustomization)
        commit = self._cluster.kubectl("exec", "-n", NAMESPACE, "deployment/git", "--", *command)
        return f"main@sha1:{commit.strip()}"

    def _until_decided(self, revision: str) -> dict[str, str]:
        """Return the Kustomization's condition Ready once it is True or False for a revision."""

        def decided() -> dict[str, str] | None:
            status = self._kustomization
            ready = _ready(status)
            is_decided = status.get("lastAttemptedRevision") == revision and ready.get("status") in {"True", "False"}
            return ready if is_decided else None

        try:
            return self._cluster.until(decided, seconds=400, what=f"Flux has decided about {revision}")
        except AssertionError as error:
            source = self._cluster.object("gitrepositories", "benchmarks", self.namespace).get("status")
            shown = [json.dumps(each) for each in (self._kustomization, source)]
            raise AssertionError("\n".join([str(error), *shown, self.diagnosis()])) from None


def _ready(status: dict[str, Any]) -> dict[str, str]:
    return next((condition for condition in status.get("conditions", []) if condition["type"] == "Ready"), {})
