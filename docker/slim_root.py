"""Makes the root directory of the image: Python, its packages, and the libraries that they load.

The image contains no distribution, and so neither pip, nor a compiler, nor a package manager.
What is copied keeps its path:

- the interpreter and the standard library, without tests, Tk, IDLE, ensurepip, and other parts that
  a broker does not use;
- site-packages without pip and setuptools. Debug symbols are stripped: they are half of all bytes;
- every shared library that ldd names for them, and the dynamic linker;
- bash, which is `sh`, too: health checks use it, and `docker exec -it NAME sh`. If it is installed,
  a static busybox has the other programs. Its shell would find its `nc` before that of the PATH.
  /bin is /usr/bin.

Modules are compiled in advance, because the user of the container cannot write to the root. The
compiled files contain a hash and no time, so that two builds are equal. Of the standard library,
only the compiled files are kept: a traceback then shows its lines without their text.

    slim_root.py ROOT [SITE_PACKAGES]
"""

import compileall
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

NOT_IN_THE_LIBRARY = (
    *("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py"),
    *("ensurepip", "lib2to3", "pydoc_data", "config-*", "_tkinter*", "_test*", "_ctypes_test*"),
    *("distutils", "unittest", "xmlrpc", "sqlite3", "_sqlite3*", "curses", "_curses*"),
    *("xml", "pyexpat*", "_elementtree*", "pydoc.py", "doctest.py", "mailbox.py", "nntplib.py"),
    *("dbm", "_dbm*", "_gdbm*", "readline*", "_codecs_*"),  # the last: East Asian encodings
)
NOT_IN_SITE_PACKAGES = (
    *("pip", "pip-*", "setuptools*", "pkg_resources", "_distutils_hack", "distutils-*", "wheel*"),
    *("*.pyi", "*.pyx", "*.pxd", "*.c", "*.h", "tests"),
    *("cffi", "cffi-*", "pycparser*"),  # cryptography needs only _cffi_backend when it runs
)
# Pygments only prints Python code in colours here.
LEXERS = {"__init__.py", "_mapping.py", "python.py"}
NEVER = ("__pycache__", "*.a")
# Where the dynamic linker finds libraries outside its own directories.
LINKER_CACHE = Path("/etc/ld.so.cache")
BUSYBOX = Path("/bin/busybox")
SHELL = Path("/bin/bash")
APPLETS = (
    *("cat", "ls", "ps", "wget", "df", "du", "sleep"),
    # What health checks, init containers and scripts that are mounted call beside Kafka's commands.
    *("awk", "basename", "chmod", "chown", "cp", "cut", "date", "dirname", "echo", "env", "expr"),
    *("false", "find", "grep", "head", "hostname", "id", "ln", "mkdir", "mktemp", "mv", "netstat"),
    *("nslookup", "ping", "printf", "rm", "sed", "seq", "sort", "tail", "tee", "test"),
    *("timeout", "touch", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs"),
)
COMMAND = "#!{python}\nimport sys\n\nfrom odradek.tools.cli import main\n\nsys.exit(main())\n"


def make_root(root: Path, site_packages: Path) -> None:
    """Fill the new directory `root`. Raises OSError, CalledProcessError."""
    # Scripts begin with /bin/sh or /usr/bin/env, as in the other images.
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    python = Path(sys.executable).resolve()
    copy_tree(library, root, library, NOT_IN_THE_LIBRARY)
    copy_tree(site_packages, root, library / "site-packages", NOT_IN_SITE_PACKAGES)
    for path in inside(root, library / "site-packages" / "pygments" / "lexers").glob("*.py"):
        if path.name not in LEXERS:
            path.unlink()
    copy_file(python, root)
    for name in {"python", "python3"} - {python.name}:
        inside(root, python.with_name(name)).symlink_to(python.name)
    command = inside(root, python.with_name("odradek"))
    command.write_text(COMMAND.format(python=python))
    command.chmod(0o755)
    # ldd reads the originals, because some find their libraries relative to the file.
    for path in libraries_of(
        [python, SHELL, *originals_in(inside(root, library), library, site_packages)]
    ):
        if not inside(root, path).exists():
            copy_file(path, root)
    strip([path for path in inside(root, Path(sys.base_prefix)).rglob("*.so*") if path.is_file()])
    copy_file(LINKER_CACHE, root)
    copy_file(SHELL, root)
    inside(root, SHELL.with_name("sh")).symlink_to(SHELL.name)
    compile_library(inside(root, library), root)
    compile_modules(inside(root, library / "site-packages"), root)
    if BUSYBOX.exists():
        copy_file(BUSYBOX, root)
        for name in APPLETS:
            inside(root, BUSYBOX.with_name(name)).symlink_to(BUSYBOX.name)


def inside(root: Path, path: Path) -> Path:
    """The place of an absolute path in the new root."""
    return root / path.relative_to("/")


def copy_tree(source: Path, root: Path, target: Path, ignored: Iterable[str]) -> None:
    ignore = shutil.ignore_patterns(*ignored, *NEVER)
    shutil.copytree(source, inside(root, target), ignore=ignore, dirs_exist_ok=True)


def copy_file(path: Path, root: Path) -> None:
    """Copy a file. What is a link outside is a file in the new root."""
    inside(root, path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, inside(root, path))


def strip(files: Iterable[Path]) -> None:
    for file in files:
        file.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", str(file)], check=True)


def originals_in(copy: Path, library: Path, site_packages: Path) -> Iterator[Path]:
    """The originals of the extension modules that were copied."""
    for path in copy.rglob("*.so*"):
        inner = path.relative_to(copy)
        is_package = inner.parts[0] == "site-packages"
        yield site_packages.joinpath(*inner.parts[1:]) if is_package else library / inner


def libraries_of(binaries: Iterable[Path]) -> set[Path]:
    """What ldd names for the files outside the packages: `x.so => /lib/x.so (0x…)`."""
    found = set()
    for binary in binaries:
        done = subprocess.run(["ldd", str(binary)], check=False, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            found |= {Path(word) for word in line.split() if word.startswith("/")}
    return found


def compile_library(library: Path, root: Path) -> None:
    """Replace each module of the standard library by its compiled file, which takes its place."""
    compile_modules(library, root, legacy=True, skip="/site-packages/")
    for source in library.rglob("*.py"):
        if "site-packages" not in source.parts and source.with_suffix(".pyc").exists():
            source.unlink()


def compile_modules(
    directory: Path, root: Path, *, legacy: bool = False, skip: str | None = None
) -> None:
    """Compile modules. With `legacy`, a compiled file stands beside its source."""
    compileall.compile_dir(
        directory,
        quiet=1,
        legacy=legacy,
        rx=None if skip is None else re.compile(skip),
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


if __name__ == "__main__":
    make_root(Path(sys.argv[1]), Path((*sys.argv[2:], sysconfig.get_path("purelib"))[0]))
