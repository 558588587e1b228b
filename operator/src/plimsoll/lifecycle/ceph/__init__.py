"""Storage in a Ceph cluster, with or without Rook: a run's objects there, access to it, and its providers."""
