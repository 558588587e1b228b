"""What conductor and agents say to each other. Pure; described in docs/protocol.md."""
