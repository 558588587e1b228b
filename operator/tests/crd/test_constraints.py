"""No constraint without a test: the API server rejects violations of every bound."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plimsoll.api.names import RESULT_KIND, RUN_KIND, SUITE_KIND
from support.apiserver import Answer, ApiServer, Document
from support.breaches import Breach, breaking, broken, merge_patch, slim, together
from support.corpus import REFUSED
from support.kinds import RESULTS, RUNS, SUITES, create, delete, patch
from support.manifests import FULL, Manifest, changed
from support.refusals import seen, unseen
from support.results import FULL_RESULT, FULL_STATUS
from support.schemas import schema_of
from support.suites import FULL_SUITE, FULL_SUITE_STATUS

pytestmark = pytest.mark.crd

RESULT = {name: part for name, part in FULL_RESULT.items() if name != "status"}


def test_every_constraint_on_a_specification_is_seen_to_refuse(
    refusal: Callable[[str, Manifest], Answer], definitions: dict[str, Document]
) -> None:
    found = seen(refusal(RUNS, manifest) for manifest in REFUSED)
    left = unseen(schema_of(definitions[RUN_KIND])["properties"]["spec"], "spec", found)
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []


def check(answer: Answer, breaches: Sequence[Breach]) -> Answer:
    """Return the answer to a document with these breaches, each of which it names."""
    assert answer.code == 422, (breaches, answer.code, answer.message[:300])
    assert [breach for breach in breaches if not breach.is_refused_by(answer)] == [], answer.causes
    return answer


@pytest.mark.parametrize("kind", [RUN_KIND, RESULT_KIND, SUITE_KIND])
def test_every_constraint_on_a_status_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document], kind: str
) -> None:
    schema = schema_of(definitions[kind])["properties"]["status"]
    collection, whole, status = {
        RUN_KIND: (RUNS, FULL, FULL_STATUS),
        RESULT_KIND: (RESULTS, RESULT, FULL_RESULT["status"]),
        SUITE_KIND: (SUITES, FULL_SUITE, FULL_SUITE_STATUS),
    }[kind]
    create(api, collection, dict(whole), keep=True).expect(201)
    path = f"{collection}/{whole['metadata']['name']}"
    try:
        small = {"status": slim(status)}
        patch(api, f"{path}/status", small).expect(200)
        breaches = [breach for breach in breaking(small["status"], schema, ("status",)) if len(breach.way) > 1]
        answers = [
            check(patch(api, f"{path}/status", merge_patch(small, broken(small, group))), group)
            for group in together(breaches)
        ]
        assert unseen(schema, "status", seen(answers)) == []
    finally:
        delete(api, path)


def test_every_constraint_on_what_a_result_is_of_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document]
) -> None:
    schema = schema_of(definitions[RESULT_KIND])["properties"]["spec"]
    groups = together(breaking(RESULT["spec"], schema, ("spec",)))
    answers = [check(create(api, RESULTS, broken(RESULT, group)), group) for group in groups]
    search = RESULT["spec"]["line"]
    of_a_search: tuple[tuple[str, Any], ...] = (
        ("objectives", []),
        ("objectives", search["objectives"] * 2),
        ("start", search["limit"] + 1),
    )
    for name, wrong in of_a_search:
        answers.append(create(api, RESULTS, changed(RESULT, {f"spec.line.{name}": wrong})))
        assert answers[-1].code == 422
    left = unseen(schema, "spec", seen(answers))
    assert [item for item in left if not item[1].startswith("cannot be changed")] == []
