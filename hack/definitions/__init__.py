"""From models to CustomResourceDefinitions, for `hack/crds.py`."""
