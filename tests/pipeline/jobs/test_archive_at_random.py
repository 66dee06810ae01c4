"""Archive, tables and replay beside producers, with all that may happen to them, at random.

A life is a broker with topics of several kinds, producers that write to them all the time, and one
archive. In each round something happens: archives run once, twice or are killed, `tables` follows,
the broker is killed, topics grow, lose records, are deleted and made again, another writer changes
the table, records are replayed. In the end, all is compared byte for byte: the archive with what
the producers were told and with what a consumer reads, the replayed topics with the archive.

`ODRADEK_TEST_MINUTES` says how long lives follow each other, `ODRADEK_TEST_SEED` which ones.
"""

import itertools
import random
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from odradek.pipeline.jobs.offset_spans import Span, merge_spans
from odradek.storage.checkpoints import read_topic_id
from odradek.storage.filenames import PARTITION_METADATA
from odradek.storage.files import Files
from tests.support.archive_contents import (
    ArchiveContents,
    Rows,
    archive_contents,
    consumed,
    log_start,
    rows_by_place,
)
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import LONG, MINUTES, SEED
from tests.support.pipeline_commands import Ended, PipelineCommand, run_pipeline
from tests.support.sent_records import YEAR_10000_MS, Held, Place, Row, SentRecords
from tests.support.topic_writer import NOW_MS, Topic, TopicWriter
from tests.support.topics import create_topic, delete_topic

pytestmark = pytest.mark.slow

BROKER = {
    "auto.create.topics.enable": "false",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.dedupe.buffer.size": "1048577",
    "log.segment.delete.delay.ms": "500",
    "log.initial.task.delay.ms": "0",
}
SEGMENTS = {"internal.segment.bytes": "250000", "segment.ms": "2000"}
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "cleaned": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "1000",
    },
    "short": {"retention.bytes": "150000"},
    "again": {},
}
LIMIT_SECONDS = 60.0
MAX_PARTITIONS = 6
LOST = re.compile(r"\blost(?:, because [^:]*)?: (\w+)-(\d+): offsets (\d+) to (\d+)")
REFUSAL = re.compile(r"of another writer has changed records of .*\.restore\((\d+)\)")
OVERTAKEN = re.compile(r"another process (is archiving to the same table|has changed what is)")
UNCREATED = re.compile(r"cannot create \S+: .* Broker transport failure")
DELETED = re.compile(r"it was deleted while the run was planned")


def test_each_record_is_archived_and_replayed_as_it_was_sent(tmp_path: Path) -> None:
    if not LONG:
        pytest.skip("only with ODRADEK_TEST_LENGTH=long")
    deadline = time.monotonic() + 60 * MINUTES
    for number in itertools.count():
        if time.monotonic() > deadline:
            break
        life = Life(tmp_path / str(number), random.Random(f"{SEED}-{number}"))
        try:
            life.run()
        except BaseException as error:
            life.freeze()
            error.add_note(f"life {number} of seed {SEED}: {'; '.join(life.story)}")
            raise
        finally:
            life.end()
        shutil.rmtree(tmp_path / str(number))
        print(f"life {number}: {len(life.sent)} records; {'; '.join(life.story)}")  # noqa: T201 - shown by -s
    assert number > 0


class Life:
    """A broker, its topics, their writers, and an archive."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.sent = SentRecords()
        self.story: list[str] = []
        self._root = root
        self._chance = chance
        self._archive = root / "archive"
        self._said = root / "said"
        self._said.mkdir(parents=True)
        self._committed_only = chance.random() < 0.7
        isolation = "read_committed" if self._committed_only else "read_uncommitted"
        self._options = ["--isolation", isolation, "--topics", "|".join(TOPICS)]
        if chance.random() < 0.3:
            schema = root / "schema.json"
            schema.write_text('{"id": "long"}')
            self._options += ["--schema", str(schema)]
        self._broker = BrokerProcess(root / "broker", BROKER).start()
        self._partitions: dict[str, int] = {}
        self._writers: dict[str, TopicWriter] = {}
        self._ids: dict[str, list[str]] = {name: [] for name in TOPICS}
        self._deleted_before: dict[Place, int] = {}
        self._removed: set[tuple[Place, int]] = set()
        self._tables: PipelineCommand | None = None
        self._deletions = 0
        self._tables_began_at = (0, 0)  # counts of deleted topics and of changes by others
        self._changes = 0
        self._replays = 0
        for name in TOPICS:
            self._begin_topic(name)

    def run(self) -> None:
        """Let things happen; raises AssertionError if something is not as it must be."""
        happenings: dict[Callable[[], None], int] = {
            self.archive_once: 4,
            self.archive_twice: 2,
            self.archive_killed: 4,
            self.tables_change: 4,
            self.kill_broker: 3,
            self.grow: 1,
            self.make_again: 1,
            self.delete_records: 2,
            self.other_writer: 2,
            self.other_optimizes: 1,
            self.replay_some: 3,
            self.check: 1,
        }
        for _ in range(self._chance.randint(12, 20)):
            (happening,) = self._chance.choices([*happenings], [*happenings.values()])
            self.story.append(happening.__name__)
            happening()
            assert self.sent.failures == []
            for writer in self._writers.values():
                writer.check()
            time.sleep(self._chance.random())
        self.story.append("finish")
        self.finish()

    def freeze(self) -> None:
        """Kill the broker, so that its files stay as they are at a fault."""
        if self._broker.is_running:
            self._broker.kill()

    def end(self) -> None:
        """End all processes."""
        if self._tables is not None:
            self._tables.kill()
        try:
            if self._broker.is_running:  # else the writers wait for it in vain
                for writer in self._writers.values():
                    writer.stop()
        finally:
            self._broker.stop()

    # -- what happens to the broker ----------------------------------------------------------------

    def _begin_topic(self, name: str) -> None:
        partitions = self._chance.randint(1, 3)
        create_topic(self._broker.bootstrap, name, partitions, {**SEGMENTS, **TOPICS[name]})
        directory = self._broker.data / f"{name}-0"
        topic_id = read_topic_id(Files(), directory / PARTITION_METADATA)
        assert topic_id is not None
        self._partitions[name] = partitions
        self._ids[name].append(topic_id.hex())
        topic = Topic(
            name,
            topic_id.hex(),
            keys=20 if "cleanup.policy" in TOPICS[name] else 0,
            is_log_append_time="message.timestamp.type" in TOPICS[name],
        )
        chance = random.Random(self._chance.random())
        self._writers[name] = TopicWriter(
            self._broker.bootstrap, topic, partitions, self.sent, chance, pause_s=0.3
        )

    def kill_broker(self) -> None:
        """Perhaps while an archive reads its files."""
        archive = self._start_archive() if self._chance.random() < 0.5 else None
        time.sleep(self._chance.uniform(0, 1.5))
        self._broker.kill()
        time.sleep(self._chance.random())
        self._broker.start()
        if archive is not None:
            self._check_archive(archive.wait())

    def grow(self) -> None:
        """A topic gets more partitions."""
        name = self._chance.choice([*TOPICS])
        partitions = min(self._partitions[name] + self._chance.randint(1, 2), MAX_PARTITIONS)
        if partitions > self._partitions[name]:
            admin = self._new_admin()
            wanted = NewPartitions(name, partitions)
            admin.create_partitions([wanted])[name].result(LIMIT_SECONDS)
            self._partitions[name] = partitions
            self._writers[name].grow(partitions)

    def make_again(self) -> None:
        """A topic is deleted and made again, perhaps while an archive reads it."""
        name = self._chance.choice(["again", "again", "cleaned", "stamped"])
        self._writers.pop(name).end()
        deletions = self._deletions
        archive = self._start_archive() if self._chance.random() < 0.5 else None
        time.sleep(self._chance.uniform(0, 1.5))
        self._deletions += 1
        delete_topic(self._broker.bootstrap, name)
        self._begin_topic(name)
        if archive is not None:
            self._check_archive(archive.wait(), deletions=deletions)

    def delete_records(self) -> None:
        """The first records of a partition are deleted; some may not be archived."""
        partition = self._chance.randrange(self._partitions["short"])
        place = Place("short", self._ids["short"][-1], partition)
        there = self.sent.expected(place, committed_only=self._committed_only)
        if there:
            before = self._chance.choice([*there])
            first = log_start(self._broker.bootstrap, "short", partition)
            if before > first:
                wanted = TopicPartition("short", partition, before)
                admin = self._new_admin()
                self._deleted_before[place] = before
                answers = admin.delete_records([wanted])
                next(iter(answers.values())).result(LIMIT_SECONDS)

    def _new_admin(self) -> AdminClient:
        """A client that knows nothing of a broker that was killed.

        Keep it until its answers are there: librdkafka gives none after the collector has taken it.
        """
        return AdminClient({"bootstrap.servers": self._broker.bootstrap, "log_level": 0})

    # -- archive and tables ------------------------------------------------------------------------

    def archive_once(self) -> None:
        """An archive runs to its end."""
        self._check_archive(self._start_archive().wait())

    def archive_twice(self) -> None:
        """Two archives run at once."""
        first, second = self._start_archive(), self._start_archive()
        for each in (first, second):
            self._check_archive(each.wait(), beside=True)

    def archive_killed(self) -> None:
        """An archive is killed at any moment."""
        archive = self._start_archive()
        time.sleep(self._chance.uniform(0.3, 2.0))
        self._check_archive(archive.kill(), killed=True)

    def tables_change(self) -> None:
        """`tables` begins; or it is stopped or killed."""
        if self._tables is None:
            pace = ["--every", self._chance.choice(["0.3", "1"]), "--merge-every", "2"]
            self._tables = self._start("tables", *pace, *self._some_processes())
            self._tables_began_at = (self._deletions, self._changes)
            time.sleep(self._chance.uniform(0, 3))
            return
        tables, self._tables = self._tables, None
        is_killed = self._chance.random() < 0.6
        if not is_killed:
            tables.send_signal(signal.SIGTERM)
        self._check_tables(tables.kill() if is_killed else tables.wait(), is_killed=is_killed)

    def _start_archive(self, *more: str) -> PipelineCommand:
        options = [*more, *self._some_processes()]
        options += ["--until-end"] * (self._chance.random() < 0.6)
        options += ["--compact"] * (self._chance.random() < 0.3)
        return self._start("archive", *options)

    def _start(self, name: str, *options: str) -> PipelineCommand:
        place = [str(self._archive), "--path", str(self._broker.data), *self._options]
        return PipelineCommand(self._said, name, *place, *options)

    def _some_processes(self) -> list[str]:
        return ["--processes", str(self._chance.randint(1, 2))]

    def _check_archive(
        self,
        ended: Ended,
        *,
        beside: bool = False,
        killed: bool = False,
        deletions: int | None = None,
    ) -> None:
        """Whether a run was right, or has refused in one clear line."""
        self._check_text(ended)
        errors, problems, lost = ended.lines("error"), ended.lines("problem"), _lost(ended)
        was_deleted = deletions is not None and self._deletions > deletions
        assert all(was_deleted and DELETED.search(each) for each in problems), ended
        if killed and ended.code == -signal.SIGKILL:
            return
        if ended.code == 4:
            assert beside or self._tables is not None, ended
            assert len(errors) == 1, ended
            assert OVERTAKEN.search(errors[0]), ended
        else:
            assert errors == [], ended
            assert ended.code == (1 if problems else 3 if lost else 0), ended
            assert ended.out.startswith("archived into "), ended

    def _check_tables(self, ended: Ended, *, is_killed: bool) -> None:
        self._check_text(ended)
        deletions, changes = self._tables_began_at
        allowed = [DELETED] * (self._deletions > deletions) + [REFUSAL] * (self._changes > changes)
        errors, problems = ended.lines("error"), ended.lines("problem")
        assert all(any(each.search(line) for each in allowed) for line in errors + problems), ended
        if is_killed and ended.code == -signal.SIGKILL:
            return
        if (ended.code, ended.out, errors) == (-signal.SIGTERM, "", []):
            return  # before `tables` had begun
        if errors:  # it was changed before `tables` had begun
            assert (ended.code, ended.out, len(errors)) == (1, "", 1), ended
            return
        codes = {3 if _lost(ended) else 0} | ({1} if problems else set())
        assert ended.code in codes, ended
        assert ended.out.splitlines()[-1].startswith("stopped; "), ended

    @staticmethod
    def _check_text(ended: Ended) -> None:
        assert "Traceback" not in ended.out + ended.err, ended
        assert ended.lines("repaired") == [], ended
        assert {topic for topic, *_ in _lost(ended)} <= {"short"}, ended

    # -- other writers -----------------------------------------------------------------------------

    def other_writer(self) -> None:
        """Another writer changes records; that is noticed, and undone or accepted."""
        if not self._has_records():
            return
        before, after = self._change_table()
        difference = {
            (place, offset)
            for place in {*before, *after}
            for offset in {*before.get(place, {}), *after.get(place, {})}
            if before.get(place, {}).get(offset) != after.get(place, {}).get(offset)
        }
        refused = self._start_archive().wait()
        if not difference and refused.code != 1:
            return  # a version with the same records
        self._check_text(refused)
        (error,) = refused.lines("error")
        assert (refused.code, refused.out) == (1, ""), refused
        version = REFUSAL.search(error)
        assert version is not None, refused
        planned = run_pipeline(
            self._said, "replay", str(self._archive), "--topics", ".*", "--dry-run"
        )
        assert planned.lines("error") == [error], planned
        is_simple = all(
            before.get(place, {}).get(offset) is None or after.get(place, {}).get(offset) is None
            for place, offset in difference
        )
        if self._chance.random() < 0.5 or not is_simple:
            DeltaTable(str(self._archive)).restore(int(version[1]))
            self.archive_once()
            return
        for place, offset in difference:
            if after.get(place, {}).get(offset) is None:
                self._removed.add((place, offset))
            else:
                self._removed.discard((place, offset))
        accepted = self._start_archive("--accept-changes").wait()
        while accepted.code == 4 and self._tables is not None:  # it says: run this again
            accepted = self._start_archive("--accept-changes").wait()
        assert any("is accepted" in each for each in accepted.lines("note")), accepted
        self._check_archive(accepted)

    def _change_table(self) -> tuple[Mapping[Place, Rows], Mapping[Place, Rows]]:
        """Change records of the table; returns those before and after."""
        self._changes += 1
        while True:
            delta = DeltaTable(str(self._archive))
            rows, _ = rows_by_place(delta)
            place = self._chance.choice(sorted(each for each in rows if rows[each]))
            first = self._chance.choice(sorted(rows[place]))
            where = f'topic = \'{place.topic}\' AND "offset" >= {first} AND "offset" < {first + 50}'
            kind = self._chance.choice(["delete", "update", "restore"])
            self.story.append(f"{kind} {where} of version {delta.version()}")
            try:
                if kind == "delete":
                    delta.delete(where)
                elif kind == "update":
                    delta.update(updates={"error": "'changed'", "value": "NULL"}, predicate=where)
                elif delta.version() > 3:
                    delta.restore(
                        delta.version() - self._chance.randint(1, min(5, delta.version() - 2))
                    )
                else:
                    continue
            except CommitFailedError:  # `tables` has committed at the same time
                continue
            version = delta.version()
            earlier = DeltaTable(str(self._archive), version=version - 1)
            return rows_by_place(earlier)[0], rows_by_place(delta)[0]

    def other_optimizes(self) -> None:
        """Another tool merges files, while nobody else does."""
        if self._tables is None and self._has_records():
            DeltaTable(str(self._archive)).optimize.compact()
            self.archive_once()

    def _has_records(self) -> bool:
        if not DeltaTable.is_deltatable(str(self._archive)):
            return False
        return bool(DeltaTable(str(self._archive)).file_uris())

    # -- comparing ---------------------------------------------------------------------------------

    def check(self) -> ArchiveContents | None:
        """Whether the archive has what it says, and nothing else."""
        if not DeltaTable.is_deltatable(str(self._archive)):
            return None
        contents = archive_contents(self._archive)
        assert contents.twice == []
        places = {*contents.rows, *contents.covered}
        if self._committed_only:
            covered = contents.covered
            self._resolve(
                {each: self._held(each, contents, covered.get(each, ())) for each in places}
            )
        for place in places:
            self._check_place(place, contents, contents.covered.get(place, ()))
        return contents

    def _resolve(self, held: Mapping[Place, Held]) -> None:
        """Decide transactions of unknown fate: all of one is there, or nothing."""
        cleaned = {
            place: Held(each.rows) for place, each in held.items() if place.topic == "cleaned"
        }
        faults = self.sent.resolve({**held, **cleaned})
        assert not faults, "\n".join(faults)

    def _held(self, place: Place, contents: ArchiveContents, covered: Sequence[Span]) -> Held:
        removed = [Span(offset, offset + 1) for where, offset in self._removed if where == place]
        lost = [*contents.lost.get(place, ()), *merge_spans(removed)]
        return Held(contents.rows.get(place, {}), covered, lost)

    def _check_place(
        self, place: Place, contents: ArchiveContents, covered: Sequence[Span]
    ) -> None:
        held, lost = self._held(place, contents, covered), contents.lost.get(place, ())
        again = [offset for offset in held.rows if (place, offset) in self._removed]
        assert again == [], f"{place}: offsets {again} are there again"
        self._check_faults(place, held, committed_only=self._committed_only)
        if lost:
            assert place.topic == "short"
            assert max(span.end for span in lost) <= self._log_start(place)

    def _check_faults(self, place: Place, held: Held, *, committed_only: bool) -> None:
        is_cleaned = place.topic == "cleaned"
        faults = self.sent.faults(place, held, committed_only=committed_only, compacted=is_cleaned)
        found = [*itertools.islice(faults, 10)]
        assert not found, "\n".join(found)

    def finish(self) -> None:
        """All is decided, archived and replayed, and compared to the last record."""
        for writer in self._writers.values():
            writer.end()
            self.story += [f"{writer.topic.name}: {each}" for each in writer.aborted]
        self._writers = {}
        if self._tables is not None:
            tables, self._tables = self._tables, None
            tables.send_signal(signal.SIGTERM)
            self._check_tables(tables.wait(), is_killed=False)
        assert self.sent.failures == []
        self._check_archive(self._start("archive", "--until-end").wait())
        committed = {name: self._consumed(name, committed_only=True) for name in self._partitions}
        readable = {
            place: Held(rows, [Span(self._log_start(place), 2**62)])
            for found in committed.values()
            for place, rows in found.items()
        }
        self._resolve(readable)
        for place, held in readable.items():
            self._check_faults(place, held, committed_only=True)
        contents = self.check()
        assert contents is not None
        for name, found in committed.items():
            if not self._committed_only:
                found = self._consumed(name, committed_only=False)
            self._check_topic(name, found, contents)
            self._replay(name, is_last=True)
        self._check_notes(contents)

    def _consumed(self, name: str, *, committed_only: bool) -> Mapping[Place, Rows]:
        """What a consumer reads of a topic in which nobody writes any more."""
        partitions = self._partitions[name]
        found = consumed(self._broker.bootstrap, name, partitions, committed_only=committed_only)
        return {Place(name, self._ids[name][-1], each): rows for each, rows in found.items()}

    def _log_start(self, place: Place) -> int:
        return log_start(self._broker.bootstrap, place.topic, place.partition)

    def _check_topic(
        self, name: str, found: Mapping[Place, Rows], contents: ArchiveContents
    ) -> None:
        """Whether the archive has all of a topic, as a consumer reads it."""
        for place, there in found.items():
            # What was deleted before the partition was archived at all is not lost.
            begins = next((span.start for span in contents.covered.get(place, ())), 0)
            assert begins <= self._deleted_before.get(place, 0), place
            self._check_place(place, contents, [Span(begins, 2**62)])
            rows = contents.rows.get(place, {})
            wrong = {
                offset: (row, rows.get(offset), self.sent.fate(place, row.content))
                for offset, row in there.items()
                if (place, offset) not in self._removed and rows.get(offset) != row
            }
            assert not wrong, f"{place}: {wrong}"
            first = self._log_start(place)
            unknown = [each for each in rows if each >= first and each not in there]
            assert name == "cleaned" or unknown == [], place

    def _check_notes(self, contents: ArchiveContents) -> None:
        """Whether `replay` names what was lost."""
        planned = run_pipeline(
            self._said, "replay", str(self._archive), "--topic", "short", "--dry-run"
        )
        assert planned.code == 0, planned
        notes = planned.lines("note")
        for place, spans in contents.lost.items():
            for start, end in spans:
                name = f"{place.topic}-{place.partition}: offsets {start} to {end - 1}"
                why = "are left out: they were deleted before they could be archived"
                assert len(notes) > 20 or f"{name} {why}" in notes, planned

    # -- replay ------------------------------------------------------------------------------------

    def replay_some(self) -> None:
        """A topic is replayed, perhaps a part of it, and perhaps by runs that are killed."""
        self._replay(self._chance.choice([*TOPICS]), is_last=False)

    def _replay(self, name: str, *, is_last: bool) -> None:
        if not self._has_records():
            return
        before = archive_contents(self._archive)
        topic_id = self._newest_id(name, before)
        if topic_id is None:
            return
        self._replays += 1
        target = f"replayed-{self._replays}"
        selection = Selected(self._chance) if not is_last else Selected()
        options = ["--bootstrap", self._broker.bootstrap, "--topic", name, "--to-topic", target]
        options += ["--create", *selection.options, *self._some_processes()]
        kills = 0 if is_last else self._chance.choice([0, 0, 1, 3])
        if kills:
            options += ["--rate", str(self._chance.randint(200, 2000))]
        elif self._chance.random() < 0.2:
            options += ["--delivery", "at-least-once"]
        ended = self._replayed(options, kills, target)
        after = archive_contents(self._archive)
        if ended.code == 1 and _has_holes(before, name, topic_id):
            (error,) = ended.lines("error")
            assert "are not archived yet" in error, ended
            return
        assert (ended.code, ended.lines("error")) == (0, []), ended
        partitions = len(
            self._new_admin().list_topics(target, LIMIT_SECONDS).topics[target].partitions
        )
        found = consumed(self._broker.bootstrap, target, partitions) if partitions else {}
        for partition, there in found.items():
            place = Place(name, topic_id, partition)
            least, most = (selection.of(each.rows.get(place, {})) for each in (before, after))
            sent = [*there.values()]
            assert sent == most[: len(sent)], (place, target)
            assert len(sent) >= len(least), (place, target)
        if partitions:
            delete_topic(self._broker.bootstrap, target)

    def _replayed(self, options: list[str], kills: int, target: str) -> Ended:
        job: list[str] = []
        for _ in range(kills):
            command = PipelineCommand(self._said, "replay", str(self._archive), *options, *job)
            time.sleep(self._chance.uniform(0.5, 3))
            is_broker_killed = self._chance.random() < 0.3
            if is_broker_killed:
                self._broker.kill()
                self._broker.start()
            ended = command.kill()
            assert "Traceback" not in ended.out + ended.err, ended
            if ended.code == 0:
                return ended
            errors = ended.lines("error")
            assert not errors or (is_broker_killed and all(map(UNCREATED.search, errors))), ended
            begun = re.search(r"^job (\S+)$", ended.err, re.MULTILINE)
            if begun is not None:
                job = ["--job-id", begun[1]]
            self.story.append(f"replay to {target} was killed, {begun and begun[1]}")
        return run_pipeline(self._said, "replay", str(self._archive), *options, *job)

    def _newest_id(self, name: str, contents: ArchiveContents) -> str | None:
        archived = {place.topic_id for place in contents.covered if place.topic == name}
        return next((each for each in reversed(self._ids[name]) if each in archived), None)


class Selected:
    """Which records are replayed: all, or those of a range of offsets or times."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self.options: list[str] = []
        self._keeps: Callable[[int, Row], bool] = lambda _offset, _row: True
        kind = "all" if chance is None else chance.choice(["all", "all", "offsets", "times"])
        if kind == "offsets":
            assert chance is not None
            start = chance.randrange(200)
            end = start + chance.randint(1, 500)
            self.options = ["--from-offset", str(start), "--to-offset", str(end)]
            self._keeps = lambda offset, _row: start <= offset < end
        elif kind == "times":
            assert chance is not None
            start, end = sorted(
                chance.sample(
                    [1, 2, NOW_MS, NOW_MS + 86_400_000, YEAR_10000_MS, YEAR_10000_MS + 1, 2**62], 2
                )
            )
            self.options = ["--from-time", str(start), "--to-time", str(end)]
            self._keeps = lambda _offset, row: start <= row.timestamp_ms < end

    def of(self, rows: Rows) -> list[Row]:
        """The selected rows in order of offset, as a topic with CreateTime has them."""
        return [
            rows[offset]._replace(timestamp_type=0)
            for offset in sorted(rows)
            if self._keeps(offset, rows[offset])
        ]


def _lost(ended: Ended) -> list[tuple[str, ...]]:
    """Topic, partition, first and last offset of what a command calls lost."""
    return LOST.findall(ended.out + ended.err)


def _has_holes(contents: ArchiveContents, name: str, topic_id: str) -> bool:
    places: Iterable[Place] = contents.covered
    return any(len(contents.covered[each]) > 1 for each in places if each[:2] == (name, topic_id))
