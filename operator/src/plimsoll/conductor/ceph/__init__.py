"""The conductor's access to a Ceph cluster: it runs Ceph's own commands with time limits, and makes no decisions."""
