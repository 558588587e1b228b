"""The messages between conductor and agents. Pure; docs/protocol.md describes the protocol."""
