"""The messages between conductor and agents. Pure; docs/reference/protocol.md describes the protocol."""
