"""franz-go's share consumer: every record is settled, and none comes again after that."""

import subprocess
from pathlib import Path

import pytest

from tests.conformance.share_reader import fill_queue
from tests.support.broker_process import BrokerProcess
from tests.support.go_programs import build, why_no_go

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[1] / "support" / "franz_go_client" / "share"
PARTITIONS, RECORDS = 3, 1_000
LIMIT_SECONDS = 120.0


def test_every_record_is_settled_once(broker: BrokerProcess, tmp_path: Path) -> None:
    reason = why_no_go(SOURCE)
    if reason:
        pytest.skip(reason)
    fill_queue(broker, "go-orders", "franz-go", partitions=PARTITIONS, records=RECORDS)
    arguments = [broker.bootstrap, "go-orders", "franz-go", str(RECORDS)]
    done = subprocess.run(
        [build(SOURCE, tmp_path), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    said = done.stdout.splitlines()
    assert done.returncode == 0, said[-5:]
    assert len(said) == len(set(said)) == RECORDS
    assert all(line.startswith("settled ") for line in said)
