"""The session secret of a run: without it, no one can start work, or post or read a result.

Each client has its own token, so an attacker who takes over one client cannot speak for another.
"""

import hmac
from base64 import urlsafe_b64encode

CERTIFICATE_FILE = "tls.crt"
"""The conductor's self-signed certificate, PEM. Agents trust it and nothing else."""

KEY_FILE = "tls.key"
"""The certificate's private key, PEM. Only the conductor gets it."""

TOKEN_KEY_FILE = "token.key"  # noqa: S105 - the name of a file
"""The key from which all clients' tokens are derived. Only the conductor gets it."""

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
"""The client's token, which an agent sends as bearer token with every request."""

_MAX_DIGITS = 9


def token_name(client: int) -> str:
    """Return the key of a client's token in the session secret."""
    return f"token-{client}"


def client_token(key: bytes, client: int) -> str:
    """Return the token that all processes of a client share: its number and an HMAC of it."""
    proof = hmac.digest(key, f"plimsoll client {client}".encode(), "sha256")
    return f"{client}.{urlsafe_b64encode(proof).rstrip(b'=').decode()}"


def client_of(token: str, key: bytes) -> int | None:
    """Return the client that a token belongs to; None if it is not valid."""
    number = token.partition(".")[0]
    if not (number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS):
        return None
    client = int(number)
    expected = client_token(key, client).encode()
    return client if hmac.compare_digest(token.encode(errors="surrogateescape"), expected) else None
