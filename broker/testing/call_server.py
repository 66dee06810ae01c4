"""Reads calls from standard input and writes replies to standard output, a line each (calls.py)."""

import asyncio
import logging
import os
import sys

import msgspec

from odradek.broker.common.event_loop import new_event_loop
from odradek.broker.common.log_lines import configure_logging
from odradek.broker.handlers import HANDLERS
from odradek.broker.lifecycle.parent_process import ParentWatch
from odradek.config.broker_config import BrokerConfig

from .calls import MAX_LINE_BYTES, AnyCall, Reply, Start, Stop
from .faults import Faults
from .leftover_clients import LeftoverClients
from .service import REFUSALS, Service, Setup
from .start_codecs import compile_start_codecs

logger = logging.getLogger("odradek.testing")


class CallServer:
    """Serves the calls of one broker's test.

    The template makes it before it forks: what is the same for each broker is made once.
    """

    def __init__(self) -> None:
        """Send log lines to standard error, and compile what a start uses."""
        configure_logging("text")
        compile_start_codecs()
        self._decoder = msgspec.json.Decoder(AnyCall)
        self._leftover_clients = LeftoverClients(HANDLERS)
        self._faults = Faults(self._leftover_clients.handlers)

    def serve(self) -> None:
        """Serve until standard input ends, or a Stop."""
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        reader = asyncio.StreamReader(MAX_LINE_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        service: Service | None = None
        # A forked child of the test's process may keep standard input open.
        watch = ParentWatch(asyncio.get_running_loop(), lambda: os._exit(0))
        while line := await reader.readline():
            number, _, text = line.partition(b" ")
            if not number.isdigit():
                continue
            reply, call = Reply(), None
            try:
                call = self._decoder.decode(text)
                if isinstance(call, Start):
                    config = BrokerConfig.from_texts(call.settings)
                    setup = Setup(config, self._faults, self._leftover_clients, call.ports)
                    service = Service(setup, await setup.open())
                    reply = _result(service.ports)
                else:
                    assert service is not None, "the first call must be Start"
                    if isinstance(call, Stop):
                        await service.stop()
                    else:
                        reply = _result(await service.serve(call))
            except REFUSALS as error:
                reply = Reply(error=str(error))
            except Exception as error:  # the root of a call: the next ones are served
                logger.exception("a call failed")
                reply = Reply(error=f"{type(error).__name__}: {error}")
            _write(number, reply)
            if isinstance(call, Stop):
                watch.close()
                return
        os._exit(0)  # the data is not needed any more: nothing is flushed or closed


def _result(value: object) -> Reply:
    return Reply(msgspec.Raw(msgspec.json.encode(value)))


def _write(number: bytes, reply: Reply) -> None:
    sys.stdout.buffer.write(b"%b %b\n" % (number, msgspec.json.encode(reply)))
    sys.stdout.buffer.flush()
