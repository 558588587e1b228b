"""One load generator, kept simple: arms, runs one tool at T0, posts its measurement, exits without a conductor."""
