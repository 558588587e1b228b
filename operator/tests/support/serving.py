"""Workers of real programs between clients: one serves while another one loads it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import ArmOrder, ServeOrder

TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)


@asynccontextmanager
async def served(server: Worker, order: ServeOrder) -> AsyncIterator[None]:
    """Let a worker serve, from when clients may connect until the end of the block."""
    is_ready = asyncio.Event()

    async def ready() -> None:
        is_ready.set()

    serving = asyncio.create_task(server.serve(order, ready))
    try:
        async with asyncio.timeout(30):
            while not is_ready.is_set():
                assert not serving.done(), serving.result()
                await asyncio.sleep(0.01)
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def load(worker: Worker, order: ServeOrder, *peers: tuple[int, str]) -> ClientDocument:
    """Let a worker load servers at once, each with its address."""
    fields = order.model_dump(exclude={"kind", "peers"})
    armed = ArmOrder(**fields, peers=dict(peers), t0_nanoseconds=time.time_ns())
    return await worker.measure(worker.arm(armed), Clock(offset=0, error=0))


def measured(document: ClientDocument) -> Measurement:
    """Return the numbers of a document without errors."""
    assert document.parse_error is None, document.stderr_tail
    assert document.exit_code == 0
    assert document.measurement is not None
    return document.measurement
