"""The Prometheus metrics of results, runs, the current trial and the operator itself."""
