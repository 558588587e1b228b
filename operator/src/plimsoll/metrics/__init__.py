"""What Prometheus is told: of results and runs, of a trial under way, and of the operator itself."""
