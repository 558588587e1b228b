"""The tokens of clients."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.conductor.secret import make_secret, write_secret
from plimsoll.protocol.assignment import TOKEN_FILE, TOKEN_KEY_FILE, client_of, client_token, token_name

KEY = b"key"


@given(st.integers(0, 999), st.binary(min_size=1, max_size=40))
def test_a_token_identifies_its_client_to_the_owner_of_the_key(client: int, key: bytes) -> None:
    token = client_token(KEY, client)
    assert client_of(token, KEY) == client
    assert key == KEY or client_of(token, key) is None


@given(st.text(max_size=60))
def test_nothing_else_is_a_token(text: str) -> None:
    assert client_of(text, KEY) is None


def test_a_token_with_another_number_is_not_valid() -> None:
    proof = client_token(KEY, 1).partition(".")[2]
    for number in ("0", "01", "1.", "", "-1", "\u0661", "9" * 5000):
        assert client_of(f"{number}.{proof}", KEY) is None


def test_a_secret_has_a_token_for_each_client_and_none_for_all() -> None:
    secret = make_secret(3)
    for client in range(3):
        assert client_of(secret[token_name(client)].decode(), secret[TOKEN_KEY_FILE]) == client
    assert TOKEN_FILE not in secret
    assert len(set(secret.values())) == len(secret)
    assert sum(map(len, make_secret(1000).values())) < 2**19


def test_files_of_a_secret_are_their_owners_alone_and_may_be_written_again(tmp_path: Path) -> None:
    directory = tmp_path / "session" / "client-0"
    for content in (b"first", b"second"):
        write_secret(directory, {"token": content})
        assert (directory / "token").read_bytes() == content
    assert [path.stat().st_mode & 0o777 for path in (directory, directory / "token")] == [0o700, 0o600]
