"""The root directory of the image, made from an installed wheel and started with chroot."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import free_ports
from tests.support.lengths import only_long
from tests.support.metrics import get

ROOT = Path(__file__).parents[2]
MAX_BYTES = 90_000_000
SCRIPTS = "/opt/odradek/docker"
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
why_not = "needs root, chroot and strip"
can_run = CHROOT is not None and shutil.which("strip") is not None and os.geteuid() == 0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_run, reason=why_not),
    only_long("what goes into the image is checked in test_dockerfile.py and test_entrypoint.py"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root directory, with the files that the Dockerfile adds to it."""
    scratch = tmp_path_factory.mktemp("image")
    # So that the container's user may come through the directories of the test.
    for directory in (scratch, scratch.parent, scratch.parent.parent):
        directory.chmod(0o755)
    venv, root = scratch / "venv", scratch / "root"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    builder = [*pip, "--dry-run", "hatchling"]
    if subprocess.run(builder, check=False, capture_output=True).returncode:
        pytest.skip("needs a package index, for the build and for what odradek requires")
    subprocess.run([*pip, str(ROOT)], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    script = ROOT / "docker" / "slim_root.py"
    subprocess.run([sys.executable, str(script), str(root), str(packages)], check=True)
    scripts = root / SCRIPTS.removeprefix("/")
    scripts.mkdir(parents=True)
    for name in ("entrypoint", "other_images", "kafka_commands", "healthcheck"):
        shutil.copy(ROOT / "docker" / f"{name}.py", scripts)
        (scripts / f"{name}.py").chmod(0o755)
    install = [sys.executable, str(ROOT / "docker" / "kafka_commands.py"), "--install", str(root)]
    subprocess.run(install, check=True)
    volume = root / "var" / "lib" / "odradek"
    volume.mkdir(parents=True)
    os.chown(volume, 1000, 1000)
    return root


def test_the_image_is_small_and_has_neither_pip_nor_a_compiler(image: Path) -> None:
    files = [path for path in image.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    assert {"pip", "setuptools", "ensurepip", "gcc", "cc"} & {
        part for path in files for part in path.parts
    } == set()


def test_a_broker_runs_there_as_a_user_that_cannot_write_to_the_root(image: Path) -> None:
    port, http = free_ports(2)
    python = str(Path(sys.executable).resolve())
    # The image's WORKDIR is the volume; chroot starts in the root directory.
    start = "import os, sys; os.chdir('/var/lib/odradek'); os.execv(sys.argv[1], sys.argv[1:])"
    inside = [str(CHROOT), "--userspec=1000:1000", str(image), python, "-c", start, python]
    environment = {
        "PATH": str(Path(python).parent),
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_ODRADEK_HTTP_LISTENER": f"127.0.0.1:{http}",
    }
    with subprocess.Popen(
        [*inside, f"{SCRIPTS}/entrypoint.py"], env=environment, stderr=subprocess.PIPE, text=True
    ) as broker:
        deadline = time.monotonic() + 30
        check = [*inside, f"{SCRIPTS}/healthcheck.py"]
        while (
            subprocess.run(check, check=False, env={}, stderr=subprocess.DEVNULL).returncode
            and broker.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        here = subprocess.run(
            [
                *(*inside, "/usr/local/bin/kafka-topics.sh"),
                *("--bootstrap-server", f"127.0.0.1:{port}", "--create", "--topic", "made-inside"),
            ],
            capture_output=True,
            text=True,
            env={},
        )
        assert here.stdout == "Created topic made-inside.\n", here.stderr
        flushed = [compressed(port, kind) for kind in ("gzip", "snappy", "lz4", "zstd")]
        status, _ = get(http, "/metrics")
        broker.send_signal(signal.SIGTERM)
        _, log = broker.communicate(timeout=60)
    assert (broker.returncode, status, flushed) == (0, 200, [0, 0, 0, 0]), log
    files = {path.name for path in (image / "var/lib/odradek").iterdir()}
    assert files == {"data", "odradek-server.properties"}


def test_the_command_line_shows_its_help_and_its_mistakes_there(image: Path) -> None:
    command = str(Path(sys.executable).resolve().with_name("odradek"))
    for words, code in ((["--help"], 0), (["topics", "list", "--nonsense"], 2)):
        done = subprocess.run([str(CHROOT), str(image), command, *words], capture_output=True)
        assert done.returncode == code, done.stderr.decode()
        assert b"Traceback" not in done.stderr


def test_a_shell_finds_the_commands_of_the_path_before_busyboxs(image: Path) -> None:
    place = image / "usr" / "local" / "bin"
    place.mkdir(parents=True, exist_ok=True)
    (place / "ours").write_text("#!/usr/bin/env bash\necho ours\n")
    (place / "ours").chmod(0o755)
    for shell in ("sh", "bash"):
        script = "PATH=/usr/local/bin:/bin; command -v nc; ours; [[ -n x ]] && echo $((1 + 1))"
        done = subprocess.run(
            [str(CHROOT), str(image), f"/bin/{shell}", "-c", script], capture_output=True, text=True
        )
        assert done.stdout == "/usr/local/bin/nc\nours\n2\n", done.stderr


def compressed(port: int, kind: str) -> int:
    """Produce a batch with a compression; how many records are left after ten seconds."""
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "compression.type": kind})
    producer.produce(kind, b"x" * 1000, partition=0)
    return producer.flush(10)
