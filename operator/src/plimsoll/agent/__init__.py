"""One load generator: small and dumb. Arms for T0, runs one tool, posts what it measured, exits when alone."""
