"""aiokafka; see task.py. Its transactions are of version 1, and its groups classic and eager.

Its transactions do not name the member of the group (KIP-447), so its group has one member.
"""

import asyncio
import sys
import time
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalOperation, KafkaError

from tests.proof.clients import task as tasks
from tests.proof.clients.task import KEPT, MOVED, Recorder, Row, Task, Values


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka has no types
    """Notes what is assigned. aiokafka rebalances in a task of its own, also amid a transaction."""

    def __init__(self, task: Task, recorder: Recorder) -> None:
        self.count = 0
        self.consumer: AIOKafkaConsumer | None = None
        self._task = task
        self._recorder = recorder

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.count += bool(revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        assert self.consumer is not None
        coordinator = self.consumer._coordinator
        self._recorder.note(
            "assign",
            group=self._task.group,
            member=coordinator.member_id,
            generation=coordinator.generation,
            keys=[*assigned],
            new=[*assigned],
        )


async def main(task: Task) -> None:
    recorder, must_end = Recorder(), tasks.until_terminated()
    try:
        if task.role == "write":
            await write(task, recorder, must_end.is_set)
        else:
            await work(task, recorder, must_end.is_set)
    except (KafkaError, TimeoutError) as error:
        sys.stderr.write(f"{task.process}: {error!r}\n")


async def write(task: Task, recorder: Recorder, is_over: Callable[[], bool]) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap,
        enable_idempotence=True,
        request_timeout_ms=tasks.REQUEST_MS,
        retry_backoff_ms=tasks.BACKOFF_MS,
    )
    values = Values(task)
    await producer.start()
    waiting: set[asyncio.Task[None]] = set()
    while not is_over():
        if len(waiting) < tasks.UNANSWERED:
            for _ in range(tasks.BURST):
                row = values.next(KEPT)
                number = recorder.begin("work", sends=[row])
                sent = await producer.send(KEPT, row[2].encode(), partition=row[1])
                waiting.add(asyncio.create_task(note(recorder, number, row, sent)))
        await asyncio.sleep(tasks.PAUSE_S)
        waiting = {each for each in waiting if not each.done()}
    await asyncio.wait_for(asyncio.gather(*waiting), tasks.TIMEOUT_S)
    await asyncio.wait_for(producer.stop(), tasks.TIMEOUT_S)


async def note(recorder: Recorder, number: int, row: Row, sent: "asyncio.Future[object]") -> None:
    try:
        found = await sent
    except KafkaError:
        return
    recorder.add(number, "ok", sends=[[*row[:3], getattr(found, "offset", None)]])


async def work(task: Task, recorder: Recorder, is_over: Callable[[], bool]) -> None:
    producer = None
    if task.role == "transact":
        producer = AIOKafkaProducer(
            bootstrap_servers=task.bootstrap,
            transactional_id=task.name,
            transaction_timeout_ms=tasks.TRANSACTION_MS,
            request_timeout_ms=tasks.REQUEST_MS,
            retry_backoff_ms=tasks.BACKOFF_MS,
        )
        await asyncio.wait_for(producer.start(), tasks.TIMEOUT_S)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=tasks.SESSION_MS,
        heartbeat_interval_ms=tasks.HEARTBEAT_MS,
        request_timeout_ms=tasks.REQUEST_MS,
        retry_backoff_ms=tasks.BACKOFF_MS,
    )
    rebalances = Rebalances(task, recorder)
    rebalances.consumer = consumer
    await asyncio.wait_for(consumer.start(), tasks.TIMEOUT_S)
    consumer.subscribe([KEPT, MOVED], listener=rebalances)
    values = Values(task)
    while not is_over():
        began, count = time.monotonic_ns(), rebalances.count
        found = await consumer.getmany(
            timeout_ms=int(tasks.POLL_S * 1000), max_records=tasks.MAX_POLLED
        )
        polls: list[Row] = [
            [place.topic, place.partition, each.offset, (each.value or b"").decode()]
            for place, records in found.items()
            for each in records
        ]
        if producer is not None:
            async with asyncio.timeout(tasks.TIMEOUT_S):
                is_aborted = await transact(recorder, began, polls, values, task, producer)
            if is_aborted:
                for place, offset in tasks.starts(polls).items():
                    consumer.seek(TopicPartition(*place), offset)
                recorder.note("assign", new=[*tasks.starts(polls)])
            if count != rebalances.count:
                break  # another process may have these partitions now
            await asyncio.sleep(tasks.PAUSE_S)
        elif polls:
            recorder.add(recorder.begin("work", at=began), "ok", polls=polls)
            if count != rebalances.count:
                continue
            offsets = tasks.ends(polls)
            number = recorder.begin("commit", group=task.group, offsets=tasks.rows(offsets))
            try:
                await consumer.commit({TopicPartition(*place): at for place, at in offsets.items()})
            except (KafkaError, IllegalOperation):
                continue
            recorder.add(number, "ok")
    await asyncio.wait_for(consumer.stop(), tasks.TIMEOUT_S)


async def transact(
    recorder: Recorder,
    began: int,
    polls: list[Row],
    values: Values,
    task: Task,
    producer: AIOKafkaProducer,
) -> bool:
    """Whether it is aborted."""
    sends = values.some(MOVED)
    offsets = tasks.ends(polls)
    number = recorder.begin(
        "work",
        at=began,
        is_transaction=True,
        polls=polls,
        sends=sends,
        group=task.group,
        offsets=tasks.rows(offsets),
    )
    await producer.begin_transaction()
    waiting = [await producer.send(MOVED, row[2].encode(), partition=row[1]) for row in sends]
    if offsets:
        places = {TopicPartition(*place): at for place, at in offsets.items()}
        await producer.send_offsets_to_transaction(places, task.group)
    for row, sent in zip(sends, waiting, strict=True):
        row[3] = (await sent).offset
    if values.random.random() < tasks.ABORTED_SHARE:
        await producer.abort_transaction()
        recorder.add(number, "fail", sends=sends)
        return True
    recorder.add(number, "commit", sends=sends)
    await producer.commit_transaction()
    recorder.add(number, "ok", sends=sends)
    return False


if __name__ == "__main__":
    asyncio.run(main(Task(*sys.argv[1:])))
