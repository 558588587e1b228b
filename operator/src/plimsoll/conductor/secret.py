"""Creates the session secret, and the conductor's TLS context."""

import secrets
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plimsoll.protocol.assignment import (
    CERTIFICATE_FILE,
    KEY_FILE,
    TOKEN_FILE,
    TOKEN_KEY_FILE,
    client_token,
    token_name,
)
from plimsoll.protocol.messages import SERVER_NAME


def make_secret(clients: int) -> Mapping[str, bytes]:
    """Return a new session secret: contents by file name, with a token for each client."""
    certificate, key = new_certificate(days=365)
    token_key = secrets.token_urlsafe(32).encode()
    return {
        CERTIFICATE_FILE: certificate,
        KEY_FILE: key,
        TOKEN_KEY_FILE: token_key,
        **{token_name(client): client_token(token_key, client).encode() for client in range(clients)},
    }


def new_certificate(*, days: int) -> tuple[bytes, bytes]:
    """Return a new self-signed certificate for `SERVER_NAME` and its private key, both PEM."""
    # Imported here because a conductor, whose secret already exists, does not need them.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def write_session(directory: Path, clients: int) -> None:
    """Write a new session secret: the conductor's part to a directory, each client's part to a subdirectory."""
    secret = make_secret(clients)
    write_secret(directory, {name: secret[name] for name in (CERTIFICATE_FILE, KEY_FILE, TOKEN_KEY_FILE)})
    for client in range(clients):
        part = {CERTIFICATE_FILE: secret[CERTIFICATE_FILE], TOKEN_FILE: secret[token_name(client)]}
        write_secret(client_directory(directory, client), part)


def client_directory(directory: Path, client: int) -> Path:
    """Return the directory of a client's part of the session secret."""
    return directory / f"client-{client}"


def write_secret(directory: Path, secret: Mapping[str, bytes]) -> None:
    """Write files of a session secret, readable by their owner only."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in secret.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)


def server_context(directory: Path) -> ssl.SSLContext:
    """Return the TLS context of a conductor, or of a helper, from the directory with its certificate and key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(directory / CERTIFICATE_FILE, directory / KEY_FILE)
    return context
