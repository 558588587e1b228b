"""The operator's shell without kopf: observes objects, and acts on them through a `plimsoll.kube` client."""
