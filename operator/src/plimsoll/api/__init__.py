"""The API as Python models: kinds, fields, names and validation errors. Pure; the lowest layer."""
