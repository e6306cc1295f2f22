"""How programs are started: which ones, with which arguments, environment and working directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from postmortem import programs

HOSTILE = {
    "PYTHONPATH": "/evil", "PYTHONSTARTUP": "/evil/x.py", "LD_PRELOAD": "", "LD_LIBRARY_PATH": ":/evil", "LD_AUDIT": "",
    "GCONV_PATH": "/evil", "GDBHISTFILE": "/evil/h", "XDG_CONFIG_HOME": "/evil", "DEBUGINFOD_URLS": "http://evil.invalid",
    "OPENSSL_CONF": "/evil", "GUILE_LOAD_PATH": "/evil", "BASH_ENV": "/evil", "GLIBC_TUNABLES": "", "XZ_OPT": "-v",
    "COV_CORE_SOURCE": "x", "PYTEST_ADDOPTS": "-x",
}  # fmt: skip


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("words", ["", ".", "bin", "./bin", "bin:."])
def test_relative_folders_of_path_find_nothing(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty word is the working directory, as a relative one is below it; an absolute one behind them counts."""
    executable(tmp_path / "gdb")
    executable(tmp_path / "bin" / "gdb")
    real = executable(tmp_path / "real" / "gdb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", words)
    assert programs.find("gdb") is None
    monkeypatch.setenv("PATH", f"{words}:{real.parent}")
    assert programs.find("gdb") == str(real)


def test_a_program_that_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody named it, from where they stood; absolute, because it is started elsewhere."""
    named = executable(tmp_path / "my-gdb")
    monkeypatch.chdir(tmp_path)
    assert programs.find("./my-gdb") == str(named)
    assert programs.find("./none") is None


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_the_environment_is_a_list_of_what_stays(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that loads code, names start-up files or measures tests; what says whose process it is stays."""
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    monkeypatch.setenv("PATH", ":.:/usr/bin:bin:/bin")
    found = programs.environment(program, {"OURS": "1"})
    assert {name for name in HOSTILE if found.get(name) == HOSTILE[name]} == set()
    assert not any(name.startswith("LD_") for name in found)
    assert (found["LC_TIME"], found["OURS"], found["PATH"]) == ("C.UTF-8", "1", "/usr/bin:/bin")


def test_a_library_folder_that_this_interpreter_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept for an interpreter of ours alone, and of all that are named only the folders that this process runs on."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    libc = next(Path(line.split()[-1]).parent for line in lines if "/libc.so" in line or "/ld-musl" in line)
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{libc}:/evil:.")
    assert programs.environment("python")["LD_LIBRARY_PATH"] == str(libc)
    assert "LD_LIBRARY_PATH" not in programs.environment("gdb")


def test_names_of_files_mean_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What names a file relative to where somebody stands is made absolute; a plain word is left to PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSTMORTEM_GDB", "tools/gdb")
    monkeypatch.setenv("TMPDIR", "./scratch")
    found = programs.environment("python")
    assert (found["POSTMORTEM_GDB"], found["TMPDIR"]) == (str(tmp_path / "tools" / "gdb"), str(tmp_path / "scratch"))
    monkeypatch.setenv("POSTMORTEM_GDB", "my-gdb")
    assert programs.environment("python")["POSTMORTEM_GDB"] == "my-gdb"


def test_a_person_keeps_shell_and_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an interactive gdb; but no history file of somebody's choice, and no start-up files."""
    monkeypatch.setenv("SHELL", "/bin/fish")
    monkeypatch.setenv("GDBHISTFILE", "/evil")
    found = programs.environment("gdb", person=True)
    assert (found["SHELL"], found["GDBHISTFILE"]) == ("/bin/fish", os.devnull)
    assert "SHELL" not in programs.environment("gdb")


@pytest.mark.parametrize("words", [["gdb"], ["./gdb"], ["bin/gdb"]])
def test_only_absolute_paths_are_started(words: list) -> None:  # type: ignore[type-arg]
    """A word would be looked for on PATH once more, a relative path from elsewhere."""
    for start in (programs.start, programs.run, programs.spawn):
        with pytest.raises(ValueError, match="is not started as"):
            start("gdb", words)
    with pytest.raises(ValueError, match="git is not started"):
        programs.run("git", ["/usr/bin/git"])


def test_where_programs_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder in which nobody can make a file; our own working directory is what it was."""
    monkeypatch.chdir(tmp_path)
    pwd = ["/bin/sh", "-c", "pwd -P; cd -P . && ls"]
    said = programs.run("python", pwd, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    assert said[0].startswith("/proc/")
    assert said[0].endswith("/fdinfo")
    assert all(name.isdigit() for name in said[1:] if name)
    output = tmp_path / "output"
    actions = [(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT, 0o600)]
    pid = programs.spawn("python", ["/bin/sh", "-c", "pwd -P"], file_actions=actions)
    assert os.waitpid(pid, 0)[1] == 0
    assert output.read_text().strip() == f"/proc/{os.getpid()}/fdinfo"
    assert Path.cwd() == tmp_path


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spawn` comes back to it, although it has no name any more."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    inode = gone.stat().st_ino
    gone.rmdir()
    assert os.waitpid(programs.spawn("python", ["/bin/true"]), 0)[1] == 0
    assert os.stat(".").st_ino == inode


def test_an_interpreter_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolated; the package is this one, and its folder stands behind the standard library's, so that nothing beside it
    takes a module's name; exit status and arguments are passed on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit(77)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = programs.python("postmortem.capture.observe.sampling", ["0", "x"])
    words[words.index("-c") + 1] = words[words.index("-c") + 1].replace(
        "sys.exit(main(sys.argv[1:]))",
        "import json, postmortem; print(json.dumps([postmortem.__file__, sys.path, sys.argv[1:], sys.flags.isolated]))",
    )
    done = programs.run("python", words, stdout=subprocess.PIPE)
    file, path, arguments, isolated = json.loads(done.stdout)
    assert (Path(file), arguments, isolated) == (Path(programs.__file__).with_name("__init__.py"), ["0", "x"], 1)
    assert "" not in path
    assert str(tmp_path) not in path
    assert path.index(str(Path(programs.__file__).parents[1])) > path.index(os.path.dirname(os.__file__))


def test_where_our_own_code_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the package, and where msgspec is; a lone file of that name is no dependency of ours."""
    folders = programs.code_folders()
    assert folders[0] == str(Path(programs.__file__).parents[1])
    assert any((Path(folder) / "msgspec" / "__init__.py").is_file() for folder in folders)
    (tmp_path / "msgspec.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "msgspec", raising=False)
    assert str(tmp_path) not in programs.code_folders()
