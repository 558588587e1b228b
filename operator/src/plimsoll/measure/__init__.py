"""Turns the clients' documents into numbers with a verdict. Pure."""
