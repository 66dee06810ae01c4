"""`odradek format`: the first users exist before the first start."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from odradek.tools.app import app
from odradek.tools.format.scram_credential import CredentialError, parse_credential
from tests.support.broker_in_thread import broker_in_thread
from tests.support.sasl import SCRAM_MODULE, LoginRefusedError, log_in_by_scram
from tests.support.wire import WireClient

SETTINGS = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.in.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.in.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
}


def format_directory(directory: Path, *options: str, stdin: str = "") -> Result:
    settings = {**SETTINGS, "log.dirs": str(directory)}
    file = directory.with_suffix(".properties")
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    return CliRunner().invoke(app, ["format", str(file), *options], input=stdin)


def test_the_first_user_logs_in_at_the_first_start_and_after_the_next(tmp_path: Path) -> None:
    done = format_directory(
        tmp_path / "data",
        "--cluster-id=AAAAAAAAAAAAAAAAAAAAAA",
        "--add-scram=SCRAM-SHA-256=[name=alice,password=pencil]",
        "--add-scram-file=-",
        stdin='\nSCRAM-SHA-512=[name=bob,iterations=8192,password="pen"]\n',
    )
    assert done.exit_code == 0, done.output
    for _ in range(2):
        with broker_in_thread(tmp_path / "data", SETTINGS) as broker:
            assert broker.broker.log_manager.cluster_id == "AAAAAAAAAAAAAAAAAAAAAA"
            with WireClient(broker.ports["IN"]) as client:
                log_in_by_scram(client, "SCRAM-SHA-256", "alice", "pencil")
            with WireClient(broker.ports["IN"]) as client:
                log_in_by_scram(client, "SCRAM-SHA-512", "bob", "pen")
            with WireClient(broker.ports["IN"]) as client, pytest.raises(LoginRefusedError):
                log_in_by_scram(client, "SCRAM-SHA-256", "bob", "pen")


def test_a_formatted_directory_stays_as_it_is(tmp_path: Path) -> None:
    assert format_directory(tmp_path / "data").exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = format_directory(tmp_path / "data")
    assert (again.exit_code, again.stderr) == (
        1,
        f"odradek: {tmp_path / 'data'} is already formatted\n",
    )
    assert format_directory(tmp_path / "data", "--ignore-formatted").exit_code == 0
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_format_that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    """meta.properties is written before the metadata."""
    user = "--add-scram=SCRAM-SHA-256=[name=alice,password=pencil]"
    both = f"--override=log.dirs={tmp_path / 'data'},{tmp_path / 'more'}"
    assert format_directory(tmp_path / "data", user, both).exit_code == 0
    before = (tmp_path / "data" / "meta.properties").read_bytes()
    (snapshot,) = (tmp_path / "data").rglob("*.checkpoint")
    for left in (snapshot.with_suffix(".checkpoint.tmp"), None):
        if left is None:
            snapshot.unlink()
        else:
            snapshot.rename(left)
        assert format_directory(tmp_path / "data", user, both).exit_code == 0
        assert (tmp_path / "data" / "meta.properties").read_bytes() == before
        assert b"alice" in snapshot.read_bytes()
    assert format_directory(tmp_path / "data", user, both).exit_code == 1


def test_directories_that_are_not_formatted_can_be_added(tmp_path: Path) -> None:
    """Each is left as it was found, with the mark of a clean stop."""
    assert format_directory(tmp_path / "data").exit_code == 0
    with broker_in_thread(tmp_path / "data", SETTINGS):
        pass
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert (tmp_path / "data" / ".kafka_cleanshutdown") in before
    both = f"--override=log.dirs={tmp_path / 'data'},{tmp_path / 'more'}"
    refused = format_directory(tmp_path / "data", both)
    assert (refused.exit_code, refused.stdout) == (1, "")
    done = format_directory(tmp_path / "data", both, "-g")
    assert (done.exit_code, done.stdout.split()[:2]) == (0, ["Formatted", str(tmp_path / "more")])
    assert (tmp_path / "more" / "meta.properties").is_file()
    assert before == {path: path.read_bytes() for path in before}


def test_no_metadata_log_is_made_beside_partitions_that_it_does_not_know(tmp_path: Path) -> None:
    assert format_directory(tmp_path / "data").exit_code == 0
    (tmp_path / "data" / "orders-0").mkdir()
    other = f"--override=metadata.log.dir={tmp_path / 'more'}"
    shutil.rmtree(tmp_path / "data" / "__cluster_metadata-0")
    done = format_directory(tmp_path / "data", other, "-g")
    assert done.exit_code == 1
    assert "holds partitions (orders-0)" in done.stderr
    assert list((tmp_path / "more").iterdir()) == []


def test_users_need_a_release_that_has_them(tmp_path: Path) -> None:
    user = "--add-scram=SCRAM-SHA-256=[name=alice,password=pencil]"
    done = format_directory(tmp_path / "data", "-r", "3.4", user)
    assert done.exit_code == 1
    assert done.stderr == "odradek: SCRAM users need metadata.version 3.5-IV2 or later\n"
    assert not (tmp_path / "data").exists()
    assert format_directory(tmp_path / "data", "-r", "3.5", user).exit_code == 0


def levels_of(data: Path) -> dict[str, int]:
    with broker_in_thread(data, SETTINGS) as broker:
        return dict(broker.broker.metadata.features.in_log)


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ([], {"metadata.version": 33, "share.version": 2, "transaction.version": 2}),
        (["--release-version=4.3"], {"metadata.version": 30, "share.version": 1}),
        (["-r", "4.0.1"], {"metadata.version": 25, "share.version": None, "group.version": 1}),
        (["-r", "4.4-IV0"], {"metadata.version": 31, "share.version": 2}),
        (["-f", "metadata.version=29"], {"metadata.version": 29, "streams.version": 1}),
        (["-f", "share.version=0", "-f", "transaction.version=1"], {"transaction.version": 1}),
    ],
)
def test_the_levels_of_features_are_chosen(
    options: list[str], levels: dict[str, int | None], tmp_path: Path
) -> None:
    done = format_directory(tmp_path / "data", *options)
    assert done.exit_code == 0, done.output
    found = levels_of(tmp_path / "data")
    assert {name: found.get(name) for name in levels} == levels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-r", "4.5"], "'4.5' is not known: give a release, such as 4.3, or .* to 4.4-IV2"),
        (["-r", "4.3", "-f", "metadata.version=30"], "give --release-version or metadata.version"),
        (["-f", "share.version"], "'share.version' must be NAME=LEVEL"),
        (["-f", "x=1"], "the feature x cannot be chosen, but these: metadata.version, elig"),
        (["-f", "kraft.version=0"], "the feature kraft.version cannot be chosen"),
        (["-f", "share.version=3"], "share.version. This broker only supports versions 0-2"),
        (["-f", "metadata.version=34"], "This broker only supports versions 7-33"),
        (["-r", "3.9", "-f", "eligible.leader.replicas.version=1"], "It needs metadata.version 23"),
    ],
)
def test_levels_that_are_not_known_are_refused_in_one_line(
    options: list[str], message: str, tmp_path: Path
) -> None:
    done = format_directory(tmp_path / "data", *options)
    assert done.exit_code == 1
    assert re.search(message, done.stderr), done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_credential_may_have_its_salted_password() -> None:
    record = parse_credential(
        'SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]'
    )
    assert (record.name, record.mechanism, record.iterations) == ("alice", 2, 8192)
    assert record.salt == b"7q"
    assert len(record.stored_key) == len(record.server_key) == 64


def test_a_user_who_could_not_log_in_is_refused_by_name() -> None:
    with pytest.raises(CredentialError, match="user 'Zoë' cannot log in: names are of ASCII"):
        parse_credential("SCRAM-SHA-256=[name=Zoë,password=secret]")


def test_a_file_of_credentials_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_bytes(b"SCRAM-SHA-256=[name=a,password=\xe4]\n")
    done = format_directory(tmp_path / "data", "--add-scram-file", str(file))
    assert done.exit_code == 2
    assert "it is not UTF-8" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "SCRAM-SHA-1=[name=a,password=hunter2]",
        "SCRAM-SHA-256=name=a,password=hunter2",
        "SCRAM-SHA-256=[password=hunter2]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,hunter2]",
        "SCRAM-SHA-256=[name=a,pass=hunter2]",
        "SCRAM-SHA-256=[name=a,saltedpassword=hunter2]",
        "SCRAM-SHA-256=[name=a,salt=hunter2,password=x]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=16385]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=-1]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=9999999999]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=many]",
        "SCRAM-SHA-256=[name=a,password=hunter2\udcff]",
    ],
)
def test_a_malformed_credential_is_refused_without_its_text(text: str, tmp_path: Path) -> None:
    with pytest.raises(CredentialError) as caught:
        parse_credential(text)
    assert "hunter2" not in str(caught.value)
    done = format_directory(tmp_path / "data", f"--add-scram={text}")
    assert done.exit_code == 1
    assert "hunter2" not in done.output
    assert not (tmp_path / "data").exists()
