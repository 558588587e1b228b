"""The session secret's files. One secret per run; whoever lacks it can neither start work nor post or read a result."""

CERTIFICATE_FILE = "tls.crt"
"""The conductor's self-signed certificate, PEM. Agents trust it and nothing else."""

KEY_FILE = "tls.key"
"""Its private key, PEM. Only the conductor gets it."""

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
"""The bearer token that every request of an agent carries."""
