"""Controls the measurement of one run: `session` decides and is pure, the other modules perform its decisions."""
