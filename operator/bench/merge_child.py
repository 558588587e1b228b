"""One conductor's work with a trial's posts: `merge_child.py POSTS trace|plain`; prints what it took as JSON."""

import json
import sys
import time
import tracemalloc
from pathlib import Path

from place import memory_bytes
from plimsoll.api.names import Outcome
from plimsoll.api.result import Trial
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import ClientDocument
from plimsoll.measure.trial import measure_round
from plimsoll.protocol.messages import ResultPost


def main() -> None:
    posts, is_traced = Path(sys.argv[1]), sys.argv[2] == "trace"
    before = memory_bytes()
    if is_traced:
        tracemalloc.start()
    begin = time.perf_counter()
    documents = _read(posts)
    parsed = time.perf_counter()
    facts = TrialFacts(clients=tuple(sorted(documents)), runtime_seconds=300, ramp_seconds=10, t0_nanoseconds=10**18)
    numbers = measure_round(facts, documents)
    merged = time.perf_counter()
    trial = Trial(
        pass_number=0,
        attempt=0,
        epoch="e",
        clients=facts.clients,
        outcome=Outcome.MEASURED,
        started_at="",
        finished_at="",
        verdict=numbers.verdict,
        findings=numbers.findings,
        window=numbers.window,
        stalls=numbers.stalls,
        operations=numbers.operations,
        slowest=numbers.slowest,
        warnings=numbers.warnings,
    )
    found = {
        "verdict": numbers.verdict,
        "clients": len(documents),
        "postBytes": posts.stat().st_size / len(documents),
        "parseSeconds": parsed - begin,
        "mergeSeconds": merged - parsed,
        "residentBytes": memory_bytes(),
        "residentBeforeBytes": before,
        "tracedBytes": tracemalloc.get_traced_memory()[1] if is_traced else 0,
        "trialBytes": len(trial.model_dump_json()),
    }
    print(json.dumps(found))


def _read(posts: Path) -> dict[int, ClientDocument]:
    """Read post by post, as they come in."""
    documents = {}
    with posts.open("rb") as lines:
        for line in lines:
            post = ResultPost.model_validate_json(line)
            documents[post.client] = post.document
    return documents


if __name__ == "__main__":
    main()
