"""What the host did while a client measured, and what the client's tool had open."""
