"""Puts into a folder what an environment of Python needs of the system it runs on: python3 root.py /opt/semmem /root

The interpreter with its library, every library that it or the environment is linked with, and a name for the user; no
shell, no package manager, and no time zones (all times are UTC). Whose packages the files are is noted where scanners
of images look for it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

NOT_SERVING = (
    *("test", "idlelib", "lib2to3", "turtledemo", "tkinter", "ensurepip", "pydoc_data", "distutils", "__phello__"),
    *("config-3*", "turtle.py", "turtle.*.pyc", "dist-packages"),
    *("_curses*", "_dbm.*", "nis.*", "readline.*", "ossaudiodev.*", "_ctypes_test.*", "_xxtestfuzz.*", "xxlimited*"),
    *("_testbuffer.*", "_testcapi.*", "_testclinic.*", "_testimportmultiple.*", "_testinternalcapi.*"),
    *("_testmultiphase.*",),
)
"""Of Python's own library: tests, what teaches and draws, and what brings libraries that nothing here asks for."""
FILES = ("/etc/os-release", "/usr/lib/os-release", "/etc/debian_version", "/etc/services", "/etc/protocols")
FOLDERS = ("/etc/ssl",)
LINKS = ("/lib", "/lib64", "/bin", "/sbin")
"""Of a system whose folders are one: to those below /usr."""
USER = "semmem:x:65532:65532::/var/lib/semmem:/sbin/nologin"
GROUP = "semmem:x:65532:"
OPEN_FOLDERS = {"tmp": 0o1777, "its-own/semmem": 0o700}
"""The second is moved to /var/lib, where it is the user's, by the Dockerfile."""
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")


def make_root(environment: Path, root: Path) -> None:
    """Raises CalledProcessError."""
    for link in map(Path, LINKS):
        if link.is_symlink():
            _below(root, link).symlink_to(link.readlink())
            _below(root, link.resolve() / "here")
    interpreter, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, _below(root, library), ignore=shutil.ignore_patterns(*NOT_SERVING), symlinks=True)
    kept = _below(root, library)
    linked = _libraries([interpreter, *_shared(kept), *_shared(environment)])
    wanted = {interpreter, *map(Path, FILES), *linked}
    for file in sorted(each for each in wanted if each.exists()):
        _copy(file, root)
    for folder in map(Path, FOLDERS):
        if folder.is_dir():
            shutil.copytree(folder, _below(root, folder), symlinks=True)
    python = _below(root, interpreter).with_name("python3")
    if not python.exists():
        python.symlink_to(interpreter.name)
    _name_the_user(root)
    for name, mode in OPEN_FOLDERS.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    of_python = (library / file.relative_to(kept) for file in (*kept.glob("*.py"), *_shared(kept)))
    _note_packages([*wanted, *of_python], root)


def _shared(folder: Path) -> Iterator[Path]:
    return (each for each in folder.rglob("*.so*") if each.is_file())


def _libraries(files: Iterable[Path]) -> set[Path]:
    """What these are linked with, but for what lies beside them."""
    told = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    found = {Path(name) for name in _LINKED.findall(told)}
    return {each for each in found if each.is_relative_to("/lib") or each.is_relative_to("/usr") or "ld-" in each.name}


def _copy(file: Path, root: Path) -> None:
    """The file where its name says that it is, as often as names lead on to others."""
    while file.is_symlink():
        target = file.parent.resolve() / file.readlink()
        link = _below(root, file)
        if not link.is_symlink():
            link.symlink_to(file.readlink())
        file = target
    shutil.copy2(file, _below(root, file))


def _below(root: Path, path: Path) -> Path:
    """The place in the folder, whose own folder is made; names through links stay through links."""
    place = root / path.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _name_the_user(root: Path) -> None:
    for name, line in (("passwd", USER), ("group", GROUP)):
        known = Path("/etc", name).read_text().splitlines()
        kept = [each for each in known if each.partition(":")[0] in ("root", "nobody", "nogroup")]
        _below(root, Path("/etc", name)).write_text("\n".join([*kept, line, ""]))


def _note_packages(files: Iterable[Path], root: Path) -> None:
    """What dpkg knows of the packages that the files are of, and who may copy them."""
    names = {spelled for file in files for spelled in (str(file), str(file.resolve()), str(file).removeprefix("/usr"))}
    told = subprocess.run(["dpkg-query", "-S", *sorted(names)], capture_output=True, text=True, check=False).stdout
    for package in sorted({line.partition(": ")[0] for line in told.splitlines() if not line.startswith("diversion")}):
        name = package.partition(":")[0]
        status = subprocess.run(["dpkg-query", "-s", package], capture_output=True, text=True, check=True).stdout
        _below(root, Path("/var/lib/dpkg/status.d", name)).write_text(status)
        licence = Path("/usr/share/doc", name, "copyright")
        if licence.exists():
            shutil.copy(licence, _below(root, licence))


if __name__ == "__main__":
    make_root(Path(sys.argv[1]), Path(sys.argv[2]))
