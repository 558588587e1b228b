"""Listening to a network that anybody may be on."""
