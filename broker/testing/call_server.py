"""Reads calls from standard input and writes replies to standard output, a line each (calls.py)."""

import asyncio
import os
import sys

import msgspec
import uvloop

from odradek.broker.common.log_lines import configure_logging
from odradek.broker.network.listeners import ListenError
from odradek.broker.startup.preflight import RefusedToStartError
from odradek.config.errors import ConfigError
from odradek.protocol.errors import ApiError
from odradek.storage.directories.data_directory import DirectoryError

from .calls import AnyCall, Reply, Start, Stop
from .service import Service, Setup

REFUSALS = (ApiError, ConfigError, ListenError, DirectoryError, RefusedToStartError, OSError)
LINE_LIMIT = 1 << 26


def serve_calls() -> None:
    """Serve until standard input ends, or a Stop."""
    configure_logging("text")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())


async def _serve() -> None:
    reader = asyncio.StreamReader(LINE_LIMIT)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    decoder = msgspec.json.Decoder(AnyCall)
    service: Service | None = None
    while line := await reader.readline():
        call = decoder.decode(line)
        reply = Reply()
        try:
            if isinstance(call, Start):
                setup = Setup(call.settings)
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
        _write(reply)
        if isinstance(call, Stop):
            return
    os._exit(0)  # the data is not needed any more: nothing is flushed or closed


def _result(value: object) -> Reply:
    return Reply(msgspec.Raw(msgspec.json.encode(value)))


def _write(reply: Reply) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
    sys.stdout.buffer.flush()
