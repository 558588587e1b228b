"""The helper of a node: drops the caches of the node for runs that an administrator allows to."""
