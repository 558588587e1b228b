"""The certificate of the helper that runs kube-burner, with the rights of the chart in a real API server."""

from pathlib import Path

import pytest

from chart.rendering import NAMESPACE, render
from plimsoll.helpers.burner import identity
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import ForbiddenError, Kind
from plimsoll.protocol.helpers import BURNER_CERTIFICATE
from support.apiserver import ApiServer, account_config

pytestmark = [pytest.mark.chart, pytest.mark.crd]

HELPER = "plimsoll-kube-burner"
SECRET, CONFIG_MAP = (Kind(api_version="v1", kind=kind) for kind in ("Secret", "ConfigMap"))
OTHER = "other"


@pytest.fixture
def accounts(apiserver: ApiServer, tmp_path: Path) -> dict[str, str]:
    """Return configurations of the helper and of the operator, with the chart's rights in the helper's namespace."""
    for name in (HELPER, NAMESPACE):
        apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    rendering = render({"kubeBurner": {"enabled": True, "namespaces": ["bench"]}})
    for kind in ("Role", "RoleBinding"):
        for obj in rendering.of_kind(kind):
            if obj["metadata"]["namespace"] == HELPER:
                path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HELPER}/{kind.lower()}s"
                apiserver.request("POST", path, obj).expect(201)
    for kind, content in (("secrets", {"type": "Opaque"}), ("configmaps", {})):
        obj = {"metadata": {"name": OTHER}, **content}
        apiserver.request("POST", f"/api/v1/namespaces/{HELPER}/{kind}", obj).expect(201)
    places = {"helper": (HELPER, HELPER), "operator": (NAMESPACE, "plimsoll")}
    return {who: account_config(apiserver, tmp_path, *place) for who, place in places.items()}


async def test_the_helper_publishes_its_certificate_and_neither_reads_more_than_it_needs(
    accounts: dict[str, str], tmp_path: Path
) -> None:
    async with AioKube(kubeconfig=accounts["helper"]) as helper, AioKube(kubeconfig=accounts["operator"]) as operator:
        for number in range(2):
            await identity(helper, HELPER, tmp_path / str(number))
        certificate = (tmp_path / "0" / "tls.crt").read_text()
        assert (tmp_path / "1" / "tls.crt").read_text() == certificate
        await helper.patch(CONFIG_MAP, BURNER_CERTIFICATE, HELPER, {"data": {"tls.crt": "changed"}})
        await identity(helper, HELPER, tmp_path / "2")
        published = await operator.get(CONFIG_MAP, BURNER_CERTIFICATE, HELPER)
        assert published is not None
        assert published["data"] == {"tls.crt": certificate}
        for who, kind, name in (
            (helper, SECRET, OTHER),
            (helper, CONFIG_MAP, OTHER),
            (operator, SECRET, BURNER_CERTIFICATE),
            (operator, CONFIG_MAP, OTHER),
        ):
            with pytest.raises(ForbiddenError):
                await who.get(kind, name, HELPER)
        for who in (helper, operator):
            with pytest.raises(ForbiddenError):
                await who.list(SECRET, namespace=HELPER)
            with pytest.raises(ForbiddenError):
                await who.delete(SECRET, BURNER_CERTIFICATE, HELPER)
        with pytest.raises(ForbiddenError):
            await operator.patch(CONFIG_MAP, BURNER_CERTIFICATE, HELPER, {"data": {"tls.crt": "the operator's"}})
