"""The operator: a shell without decisions of its own, which observes objects, and acts on them."""
