"""A client of the Kubernetes API behind a small port, independent of Plimsoll's kinds."""
