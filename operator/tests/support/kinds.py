"""Plimsoll's objects on an API server."""

from typing import Any

from support.apiserver import Answer, ApiServer, Document

_NAMESPACE = "/apis/plimsoll.dev/v1alpha1/namespaces/default"
RUNS = f"{_NAMESPACE}/benchmarkruns"
RESULTS = f"{_NAMESPACE}/benchmarkresults"
SUITES = f"{_NAMESPACE}/benchmarksuites"


def create(api: ApiServer, collection: str, document: Document, *, keep: bool = False) -> Answer:
    """Create an object, or only see whether it could be; unknown fields are refused as `kubectl apply` refuses them."""
    dry_run = "" if keep else "&dryRun=All"
    return api.request("POST", f"{collection}?fieldValidation=Strict{dry_run}", document)


def patch(api: ApiServer, path: str, change: Document) -> Answer:
    """Merge a change into an object; null removes a field."""
    return api.request("PATCH", f"{path}?fieldValidation=Strict", change, content="application/merge-patch+json")


def apply(api: ApiServer, path: str, document: Document, *, manager: str = "test") -> Answer:
    """Apply a document on the server's side."""
    query = f"fieldManager={manager}&fieldValidation=Strict"
    return api.request("PATCH", f"{path}?{query}", document, content="application/apply-patch+yaml")


def delete(api: ApiServer, path: str) -> None:
    api.request("DELETE", path).expect(200)


def rows(api: ApiServer, path: str) -> tuple[list[Document], list[list[Any]]]:
    """Return the columns and cells that `kubectl get` shows."""
    table = api.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").expect(200)
    return table["columnDefinitions"], [row["cells"] for row in table["rows"]]
