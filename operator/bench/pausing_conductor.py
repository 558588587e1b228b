"""A conductor that pauses after each recorded trial: `pausing_conductor.py RESULTS SECRET PORT`."""

import asyncio
import logging
import sys
from pathlib import Path

from plimsoll.api.result import ResultStatus
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.main import Listen, conduct, exit_code
from plimsoll.conductor.secret import server_context
from plimsoll.conductor.sink import FilesSink
from plimsoll.protocol.assignment import TOKEN_KEY_FILE

_PATIENCE_SECONDS = 600.0
"""While all is stopped for a bare run nobody is heard of, and nobody is lost."""


class PausingSink(FilesSink):
    """Files, and a word to whoever started this process."""

    async def record(self, point: str, status: ResultStatus) -> None:
        await super().record(point, status)
        print(status.trials[-1].model_dump_json(), flush=True)
        await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    results, secret, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sink = PausingSink(results)
    token_key = (secret / TOKEN_KEY_FILE).read_bytes()
    listen = Listen(host="127.0.0.1", port=port, tls=server_context(secret), token_key=token_key)
    timings = Timings(lost_after=_PATIENCE_SECONDS, silence=_PATIENCE_SECONDS)
    sys.exit(exit_code(asyncio.run(conduct(plan=sink.plan, sink=sink, listen=listen, timings=timings))))


if __name__ == "__main__":
    main()
