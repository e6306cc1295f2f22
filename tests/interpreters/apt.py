"""Packages of another Debian suite, by apt's own means and without touching the machine's apt.

A private root: its own sources, lists, cache and an empty package state, so that apt resolves every dependency down to
libc6. The mirror is the one that the machine's configuration names, and apt checks signatures as ever: with Debian's
archive keyring, which signs sid with the keys of the stable releases and so needs no key of sid's own.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from .steps import Unavailable, run

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TOOLS = {"apt-get": "apt", "apt-cache": "apt", "dpkg": "dpkg", "tar": "tar"}  # and the package that has each


class PrivateApt:
    """An apt of its own below ``folder``, for packages of a suite and, unless it is the machine's own, an architecture.
    Raises Unavailable where apt, a Debian mirror or the network is missing."""

    def __init__(self, folder: Path, suite: str = "sid", architecture: Optional[str] = None) -> None:
        for tool, package in _TOOLS.items():
            if shutil.which(tool) is None:
                raise Unavailable(f"{tool} is not installed: it belongs to Debian's package {package}")
        self._folder, self._suite, self._architecture = folder, suite, architecture
        self._env = {"APT_CONFIG": str(folder / "apt.conf")}
        self._configure(_mirror())
        run(["apt-get", "update", "--error-on=any"], env=self._env)

    def download(self, packages: Sequence[str]) -> List[Path]:
        """The .deb files of the packages and of all that they depend on, signatures and hashes checked by apt."""
        for package in packages:
            if not run(["apt-cache", "madison", package], env=self._env):
                raise Unavailable(f"Debian {self._suite} has no package {package} any more")
        get = ["apt-get", "--yes", "--quiet", "--no-install-recommends", "install"]
        # What is in the archive folder already would not be listed.
        nothing = f"Dir::Cache::archives={self._folder / 'nothing'}"
        listed = run([*get, "--option", nothing, "--print-uris", *packages], env=self._env)
        names = [words[1] for words in map(str.split, listed.splitlines()) if words and words[0].startswith("'")]
        run([*get, "--download-only", *packages], env=self._env)
        return [self._folder / "cache" / "archives" / name for name in names]

    def source(self, package: str, folder: Path) -> Path:
        """The upstream tarball of a source package, as ``name/suite``, downloaded into ``folder``."""
        run(["apt-get", "--quiet", "--download-only", "source", package], cwd=folder, env=self._env)
        tarballs = list(folder.glob("*.orig.tar.*"))
        tarballs = [file for file in tarballs if file.suffix != ".asc"]
        if len(tarballs) != 1:
            raise Unavailable(f"the source package {package} has no single upstream tarball")
        return tarballs[0]

    def clean(self) -> None:
        """Forgets what was downloaded; everything of use is unpacked by then."""
        run(["apt-get", "clean"], env=self._env)

    def _configure(self, mirror: str) -> None:
        for name in ("lists/partial", "cache/archives/partial", "nothing/partial", "state"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "state" / "status").write_text("")
        signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
        sources = self._folder / "sources.list"
        sources.write_text(
            f"deb {signed}{mirror} {self._suite} main\n"
            + "".join(f"deb-src {signed}{mirror} {suite} main\n" for suite in ("sid", "trixie", "bookworm"))
        )
        settings: Dict[str, str] = {
            "Dir::Etc::sourcelist": str(sources),
            "Dir::Etc::sourceparts": "-",
            "Dir::State": str(self._folder / "state"),
            "Dir::State::lists": str(self._folder / "lists"),
            "Dir::State::status": str(self._folder / "state" / "status"),
            "Dir::Cache": str(self._folder / "cache"),
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Retries": "3",
            # apt drops root to download, to a user who may not enter a private folder.
            "APT::Sandbox::User": "",
        }
        if self._architecture is not None:
            settings.update({"APT::Architecture": self._architecture, "APT::Architectures": self._architecture})
        text = "".join(f'{key} "{value}";\n' for key, value in settings.items())
        (self._folder / "apt.conf").write_text(text)


def _mirror() -> str:
    """The archive that the machine's own release comes from. Raises Unavailable where that is not Debian's."""
    release: Dict[str, str] = {}
    try:
        for line in Path("/etc/os-release").read_text().splitlines():
            key, _, value = line.partition("=")
            release[key] = value.strip('"')
    except OSError:
        pass
    if release.get("ID") != "debian":
        raise Unavailable("this machine's apt names no Debian mirror: it runs " + release.get("ID", "no Debian"))
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Identifier: Packages"])
    for line in listed.splitlines():
        uri, _, suite = line.partition(" ")
        if suite == release.get("VERSION_CODENAME"):
            return uri
    raise Unavailable("apt's sources do not name Debian's main archive")
