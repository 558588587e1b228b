"""Making the session secret, and the conductor's side of TLS."""

import secrets
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from plimsoll.protocol.messages import SERVER_NAME
from plimsoll.protocol.secret import (
    CERTIFICATE_FILE,
    KEY_FILE,
    TOKEN_FILE,
    TOKEN_KEY_FILE,
    client_token,
    token_name,
)

_TOKEN_BYTES = 32
_VALID_DAYS = 365


def make_secret(clients: int | None) -> Mapping[str, bytes]:
    """Return a new session secret: file name -> content, with a token for each client.

    Without a number of clients there is one token for all, as the programs of earlier versions expect it.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    return {
        CERTIFICATE_FILE: _certificate(key).public_bytes(serialization.Encoding.PEM),
        KEY_FILE: key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        **_tokens(secrets.token_urlsafe(_TOKEN_BYTES).encode(), clients),
    }


def write_session(directory: Path, clients: int) -> None:
    """Write a new session secret: the conductor's part into a directory, each client's into one of its own below."""
    secret = make_secret(clients)
    write_secret(directory, {name: secret[name] for name in (CERTIFICATE_FILE, KEY_FILE, TOKEN_KEY_FILE)})
    for client in range(clients):
        part = {CERTIFICATE_FILE: secret[CERTIFICATE_FILE], TOKEN_FILE: secret[token_name(client)]}
        write_secret(client_directory(directory, client), part)


def client_directory(directory: Path, client: int) -> Path:
    """Return where `write_session` puts a client's part."""
    return directory / f"client-{client}"


def write_secret(directory: Path, secret: Mapping[str, bytes]) -> None:
    """Write a session secret's files, readable by their owner only."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in secret.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)


def server_context(directory: Path) -> ssl.SSLContext:
    """Return the TLS side of a conductor."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(directory / CERTIFICATE_FILE, directory / KEY_FILE)
    return context


def _tokens(key: bytes, clients: int | None) -> Mapping[str, bytes]:
    if clients is None:
        return {TOKEN_FILE: key}
    return {TOKEN_KEY_FILE: key, **{token_name(n): client_token(key, n).encode() for n in range(clients)}}


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
