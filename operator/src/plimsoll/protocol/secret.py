"""The session secret: one per run. Whoever lacks it can neither start work nor post or read a result.

Each client has a token of its own, so whoever has taken over one client cannot speak for another.
"""

import hmac
from base64 import urlsafe_b64encode

CERTIFICATE_FILE = "tls.crt"
"""The conductor's self-signed certificate, PEM. Agents trust it and nothing else."""

KEY_FILE = "tls.key"
"""Its private key, PEM. Only the conductor gets it."""

TOKEN_KEY_FILE = "token.key"  # noqa: S105 - the name of a file
"""The key from which the tokens of all clients are derived. Only the conductor gets it."""

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
"""Where an agent finds its client's token, which every request carries as bearer token."""

_MAX_DIGITS = 9


def token_name(client: int) -> str:
    """Return the name under which the session secret holds the token of a client."""
    return f"token-{client}"


def client_token(key: bytes, client: int) -> str:
    """Return the token of a client, the same for all its processes: its number, and the proof that it is its own."""
    proof = hmac.digest(key, f"plimsoll client {client}".encode(), "sha256")
    return f"{client}.{urlsafe_b64encode(proof).rstrip(b'=').decode()}"


def client_of(token: str, key: bytes) -> int | None:
    """Return whose token this is; None if it is no client's."""
    number = token.partition(".")[0]
    if not (number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS):
        return None
    client = int(number)
    expected = client_token(key, client).encode()
    return client if hmac.compare_digest(token.encode(errors="surrogateescape"), expected) else None
