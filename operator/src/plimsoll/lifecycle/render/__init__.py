"""Manifests of a run's objects, one module per concern. Each function returns one object."""
