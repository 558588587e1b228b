"""One load generator, kept simple: arms for T0, runs one tool, posts its measurement, exits without a conductor."""
