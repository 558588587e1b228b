"""The conductor's hands on a Ceph cluster: it runs Ceph's own commands, each with a time limit, and decides nothing."""
