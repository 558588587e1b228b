"""The helpers: servers that do for a run what its pods may not, run kube-burner and drop the caches of a node."""
