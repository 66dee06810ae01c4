"""A TCP proxy before a broker, whose connections can be cut, all at once and in both directions.

It can also hold what arrives, as a network does that loses everything for a while. When it is cut,
what the broker has sent and the client has not got is lost, as is what was on its way to the
broker. It runs in a thread, and a broker must advertise its port.
"""

import asyncio
import contextlib
import threading
from typing import Self

CHUNK = 1 << 16
REFUSAL_SECONDS = 0.1  # a client may come again at once if it was accepted
START_SECONDS = 100.0


class CutProxy:
    """Serves inside its `with`."""

    def __init__(self, port: int, broker_port: int) -> None:
        self._port = port
        self._broker_port = broker_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._serves = threading.Event()
        self._passes = asyncio.Event()
        self._passes.set()
        self._thread = threading.Thread(target=self._run, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._serves.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self) -> None:
        """Abort every connection that there is."""
        self._loop.call_soon_threadsafe(self._abort)

    def hold(self) -> None:
        """Let nothing pass, in either direction, until `release`. Connections are accepted."""
        self._loop.call_soon_threadsafe(self._passes.clear)

    def release(self) -> None:
        """Pass on what was held, and what comes."""
        self._loop.call_soon_threadsafe(self._passes.set)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _run(self) -> None:
        serving = asyncio.start_server(self._connected, "127.0.0.1", self._port)
        server = self._loop.run_until_complete(serving)
        self._serves.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._close(server))
        self._loop.close()

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        pair = {writer}
        self._writers.add(writer)
        try:
            back, to = await asyncio.open_connection("127.0.0.1", self._broker_port)
            pair.add(to)
            self._writers.add(to)
            await asyncio.gather(self._copy(reader, to), self._copy(back, writer))
        except ConnectionRefusedError:
            await asyncio.sleep(REFUSAL_SECONDS)
        except (OSError, asyncio.CancelledError):
            pass  # one of them is gone, and so is the other; or the proxy ends
        finally:
            for each in pair:
                each.transport.abort()
            self._writers -= pair
            self._tasks.discard(task)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._passes.wait()
            writer.write(data)
            await writer.drain()
        await self._passes.wait()
        with contextlib.suppress(OSError):
            writer.transport.abort()
        raise ConnectionResetError
