"""The Debian package: `cargo deb` builds it, apt installs and dpkg removes and purges it in a clean Debian 12 that systemd has booted.

The clean root comes from debootstrap, with systemd and a Python to look at the store by, and is kept under .work for the next time, as is
cargo-deb. The source is harvested by the package's timer from pycsw; the store is what has to be there to the last.
"""

import os
import pathlib
import re
import shutil
import subprocess

import checks
import compare
import daemons
import readme
import records
from booted import Booted
from catalogue import Catalogue
from checks import check, check_equal
from units import DEPLOY, STORE, System

RECORDS = 120
WORK = readme.TOP / "tests/real/.work"
CARGO_DEB = "3.8.0"
INSTALL_SECONDS_MAX = 400
BUILD_SECONDS_MAX = 500
COMMAND_SECONDS_MAX = 60
CLEAN = "systemd,systemd-sysv,dbus,ca-certificates,python3"
FILES = {
    "usr/bin/csw-harvester", "usr/share/man/man1/csw-harvester.1.gz", "etc/csw-harvester/source.env.example",
    "usr/lib/systemd/system/csw-harvester@.service", "usr/lib/systemd/system/csw-harvester@.timer",
    "usr/lib/systemd/system/csw-harvester-alert@.service", "usr/share/doc/csw-harvester/copyright",
    "usr/share/doc/csw-harvester/prometheus/metrics.conf",
}
NAME = "geonetwork"
UNIT = f"csw-harvester@{NAME}"


def _must(*command, seconds_max, **how):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds_max, **how)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def cargo_deb():
    """The folder of the program."""
    home = WORK / "cargo-deb"
    if not (home / CARGO_DEB).exists():
        _must("cargo", "install", "--locked", "--quiet", "--version", CARGO_DEB, "--no-default-features", "--root", home, "cargo-deb",
              seconds_max=INSTALL_SECONDS_MAX)
        (home / CARGO_DEB).touch()
    return home / "bin"


def clean_root():
    """A Debian 12 that has nothing of this machine."""
    root = WORK / "clean-root"
    if not root.exists():
        making = WORK / "clean-root.new"
        shutil.rmtree(making, ignore_errors=True)
        _must("debootstrap", "--variant=minbase", f"--include={CLEAN}", "bookworm", making, seconds_max=INSTALL_SECONDS_MAX)
        making.rename(root)
    return root


def packaged(folder):
    """Builds it; the path of the package."""
    place = folder / "source/target/debian"
    place.mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{cargo_deb()}:{os.environ['PATH']}"}
    _must("cargo", "deb", "--locked", "--output", f"{place}/", cwd=readme.TOP, env=environment, seconds_max=BUILD_SECONDS_MAX)
    (package,) = place.glob("csw-harvester_*.deb")
    check(f"deb: cargo deb builds {package.name}", True)
    listed = _must("dpkg-deb", "--contents", package, seconds_max=COMMAND_SECONDS_MAX)
    found = {line.split()[5].removeprefix("./") for line in listed.splitlines()}
    check_equal("deb: it holds binary, manual page, units, examples and licence", FILES - found, set(), listed)
    owners = {line.split()[1] for line in listed.splitlines()}
    check("deb: all is root's", owners and owners <= {"0/0", "root/root"}, owners)
    depends = _must("dpkg-deb", "--field", package, "Depends", seconds_max=COMMAND_SECONDS_MAX)
    check("deb: it depends on libc6 and ca-certificates", re.search(r"\blibc6 \(>= [\d.]+\)", depends) and "ca-certificates" in depends,
          depends)
    return package


def installed(system, url):
    """As the README says; the timer fires."""
    (block,) = readme.commands(DEPLOY, "## Debian package")
    system.type("deb", [line for line in block if "apt install" in line], {})
    said = system.must("deb: the binary runs", "csw-harvester --version")
    check("deb: it says its version", re.fullmatch(r"csw-harvester \d+\.\d+\.\d+\n", said), said)
    said = system.booted.run(f"systemd-analyze verify --man=no {UNIT}.service {UNIT}.timer csw-harvester-alert@{NAME}.service 2>&1")
    check_equal("deb: systemd-analyze verify has nothing to say", (said.returncode, said.stdout), (0, ""))
    fast = system.booted.path("/etc/systemd/system/csw-harvester@.timer.d")
    fast.mkdir()
    (fast / "fast.conf").write_text("[Timer]\nOnCalendar=\nOnCalendar=*:*:0/5\nRandomizedDelaySec=0\n", encoding="ascii")
    (block,) = readme.commands(DEPLOY, "### A source")
    env, secret = (f"/etc/csw-harvester/{NAME}.{kind}" for kind in ("env", "password"))
    system.type("deb", block, {env: f"URL={url}\nOPTIONS=\n", secret: None})
    check("deb: the timer fires and the run is complete", system.completed(NAME), system.report(NAME))


def removed(system, catalogue):
    """Removing stops the timer and keeps settings and store; installing again goes on."""
    system.must("remove: dpkg --remove", "dpkg --remove csw-harvester")
    check_equal("remove: the timer is stopped", system.show(f"{UNIT}.timer", "ActiveState"), {"ActiveState": "inactive"})
    for path in ("/usr/bin/csw-harvester", "/usr/lib/systemd/system/csw-harvester@.service"):
        check(f"remove: {path} is gone", not system.booted.path(path).exists())
    for path in (STORE, f"/etc/csw-harvester/{NAME}.env"):
        check(f"remove: {path} is kept", system.booted.path(path).exists())
    lost = compare.differences(system.store(), NAME, catalogue.database)
    check(f"remove: the store has all {RECORDS} records", not lost, compare.shown(lost))
    (block,) = readme.commands(DEPLOY, "## Debian package")
    system.type("installed again", [line for line in block if "apt install" in line], {})
    before = len(system.runs(NAME))
    system.must("installed again: what was enabled is started", "systemctl start timers.target")
    check("installed again: the timer is at work", system.until(f"{UNIT}.timer", ActiveState="active"), system.report(NAME))
    system.must("installed again: a run", f"systemctl start {UNIT}.service")
    runs = system.runs(NAME)[before:]
    check("installed again: it goes on with the store", runs and set(runs) == {("complete", 0)}, runs, system.report(NAME))


def purged(system):
    """Purging keeps the store alone."""
    said = system.must("purge: dpkg --purge", "dpkg --purge csw-harvester")
    check("purge: it says where the store is kept", "/var/lib/private/csw-harvester" in said, said)
    check("purge: the store is kept", system.booted.path(STORE).exists())
    left = system.booted.run("find /etc /usr /run/systemd /var/lib/systemd -name '*csw-harvester*'").stdout.split()
    check_equal("purge: nothing else is", left, ["/etc/systemd/system/csw-harvester@.timer.d"])


def main():
    wrong = daemons.install("debootstrap", "systemd-nspawn")
    if not check("deb: debootstrap and systemd-nspawn are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    packaged(folder)
    root = folder / "root"
    root.mkdir()
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        with Booted(folder / "boot", root, folder / "source", clean_root()) as booted:
            system = System(booted, folder)
            installed(system, catalogue.url)
            removed(system, catalogue)
            purged(system)


checks.run(main)
