"""`plimsoll caches` as a process: it starts as root, asks a real API server about tokens, and ends when asked to."""

import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection

import pytest

from plimsoll.cli.launch import free_port
from plimsoll.protocol.helpers import CACHES_AUDIENCE, DROP_PATH
from support.apiserver import ApiServer, token_of, wait_until

pytestmark = [pytest.mark.crd, pytest.mark.usefixtures("real")]


def test_the_program_refuses_strangers_until_it_is_terminated(
    apiserver: ApiServer, namespace: str, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    monkeypatch.setenv("PLIMSOLL_NODE", "a")
    port = free_port()
    options = ("--allow", "another", "--host", "127.0.0.1", "--port", str(port))
    program = subprocess.Popen([sys.executable, "-m", "plimsoll", "caches", *options])
    try:
        wait_until(lambda: _listens(port) or program.poll() is not None, "the helper listens")
        tokens = ("", token_of(apiserver, namespace), token_of(apiserver, namespace, CACHES_AUDIENCE))
        assert [posted(port, token) for token in tokens] == [401, 401, 403]
        program.send_signal(signal.SIGTERM)
        assert program.wait(10) == 0
    finally:
        program.kill()
        program.wait()


def posted(port: int, token: str) -> int:
    """Return the status of a request."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    with closing(connection):
        connection.request("POST", DROP_PATH, body="{}", headers=headers)
        return connection.getresponse().status


def _listens(port: int) -> bool:
    done = subprocess.run(["ss", "-Htln", f"sport = :{port}"], capture_output=True, text=True, check=True)
    return bool(done.stdout.strip())
