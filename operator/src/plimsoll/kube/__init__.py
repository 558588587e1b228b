"""The Kubernetes API behind a small port: everything that operator and conductor ask of it."""
