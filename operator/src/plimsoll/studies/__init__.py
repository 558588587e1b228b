"""What five published studies of Ceph measured: their experiments, their numbers, and what reproduces them."""
