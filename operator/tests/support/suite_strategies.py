"""Parts of a run's specification as users may write them, right or wrong."""

from typing import Any

from hypothesis import strategies as st


def mapping(*keys: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), value, max_size=len(keys))


# What users may write, from real fields, and values of any form in their places.
SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["4Ki", "fast", ""])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | mapping("name", "size", value=inner))
PARAMETERS = st.dictionaries(st.sampled_from(["blockSize", "ioDepth", "pattern"]), VALUES, max_size=2)


POOLS = mapping(
    "replicated", "erasureCoded", "failureDomain", value=mapping("size", "dataChunks", value=SCALARS) | VALUES
)
ROOK = mapping("cluster", "pool", "existingPool", "fileSystem", "existingFileSystem", value=POOLS | VALUES)
STORAGE = mapping("rook", "ceph", "storageClass", "volume", value=ROOK | VALUES)
WORKLOADS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={
            "fio": PARAMETERS | SCALARS,
            "dd": PARAMETERS | SCALARS,
            "runtimeSeconds": SCALARS,
            "clients": st.lists(st.integers(1, 3), max_size=2),
        },
    ),
    max_size=4,
    unique_by=lambda workload: str(workload["name"]),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "storage": STORAGE | VALUES,
        "workloads": WORKLOADS | VALUES | st.lists(VALUES, max_size=3),
        "clients": mapping("count", "nodeSelector", "tolerations", value=VALUES),
        "repetitions": SCALARS,
        "bogus": VALUES,
    },
)
