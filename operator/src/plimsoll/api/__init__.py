"""The API as Python: kinds, field models, names and the errors a user sees. Pure; the lowest layer."""
