"""What real Ceph clusters printed."""

from pathlib import Path

_GOLDEN = Path(__file__).parent.parent / "golden"


def ceph(name: str) -> str:
    """Return a golden of the test cluster, by the name of its file without the ending."""
    return (_GOLDEN / "ceph-18.2" / f"{name}.json").read_text()


def rook(name: str) -> str:
    """Return an excerpt of a Rook cluster."""
    return (_GOLDEN / "rook-1.18.11" / f"{name}.json").read_text()


CRUSH_RULES = """
[{"rule_id":0,"rule_name":"replicated_rule","type":1,"steps":[{"op":"take","item":-1,"item_name":"default"},
  {"op":"chooseleaf_firstn","num":0,"type":"host"},{"op":"emit"}]},
 {"rule_id":1,"rule_name":"golden-data","type":3,"steps":[{"op":"set_chooseleaf_tries","num":5},
  {"op":"set_choose_tries","num":100},{"op":"take","item":-2,"item_name":"default~ssd"},
  {"op":"chooseleaf_indep","num":0,"type":"host"},{"op":"emit"}]},
 {"rule_id":2,"rule_name":"two-steps","type":1,"steps":[{"op":"take","item":-1,"item_name":"default"},
  {"op":"choose_firstn","num":2,"type":"rack"},{"op":"chooseleaf_firstn","num":2,"type":"host"},{"op":"emit"}]}]
"""
"""`ceph osd crush rule dump --format json` of the test cluster, with a rule for a device class and one of two steps."""
