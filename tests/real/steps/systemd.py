"""The units of deploy/systemd in a real systemd, installed as deploy/README.md says, against pycsw.

Two sources into one store. `secured` is asked by name, over TLS with an authority of the system's roots and HTTP Basic, so that name
service, roots and credentials have to come through the sandbox; `plain` has no secret. The clock of the timer is made faster, nothing
else. Needs systemd-container and nginx, which are installed by apt where they are missing.
"""

import contextlib
import os
import pathlib
import re
import shutil
import time

import checks
import compare
import daemons
import readme
import records
import units
from booted import Booted
from catalogue import Catalogue
from checks import check, check_equal
from fronted import HOST, NAME_SERVER, PASSWORD, NameServer, front
from units import DEPLOY, WAIT_SECONDS_MAX, System

RECORDS = 120
SECURITY_MAX = 2.0
SLOW = "--page-size 10 --delay 700"

_FAST_TIMER = """[Timer]
OnCalendar=
OnCalendar=*:*:0/2
RandomizedDelaySec=0
"""
# Five starts in ten seconds are the most by default.
_FAST_SERVICE = """[Unit]
StartLimitIntervalSec=0
"""


def install(system, url, secured_url):
    """What the README says, for two sources."""
    once, = readme.commands(DEPLOY, "## systemd")
    system.type("installed", once, {})
    source, = readme.commands(DEPLOY, "### A source")
    options = "--user me --password-file password --header 'X-Note: two words'"
    settings = {"secured": f'URL={secured_url}\nOPTIONS="{options}"\n', "plain": f"URL={url}\nOPTIONS=\n"}
    secrets = {"secured": PASSWORD + "\n", "plain": None}
    for unit, text in (("timer", _FAST_TIMER), ("service", _FAST_SERVICE)):
        edited = system.booted.path(f"/etc/systemd/system/csw-harvester@.{unit}.d")
        edited.mkdir()
        (edited / "fast.conf").write_text(text, encoding="utf-8")
    for name in settings:
        typed = [line.replace("geonetwork", name) for line in source]
        system.type(name, typed, {f"/etc/csw-harvester/{name}.env": settings[name], f"/etc/csw-harvester/{name}.password": secrets[name]})


def unit_files(system):
    """The unit files themselves."""
    said = system.booted.run("systemd-analyze verify --man=no csw-harvester@secured.service csw-harvester@secured.timer "
                             "csw-harvester-alert@secured.service 2>&1")
    check_equal("units: systemd-analyze verify has nothing to say", (said.returncode, said.stdout), (0, ""))
    said = system.booted.run("systemd-analyze security --no-pager csw-harvester@secured.service").stdout
    level = re.search(r"Overall exposure level .*: ([0-9.]+) ", said)
    check(f"units: systemd-analyze security says {level and level[1]}, at most {SECURITY_MAX}",
          level and float(level[1]) <= SECURITY_MAX, said)


def harvested(system, catalogue, names):
    """The timer fired, and the store holds what the catalogue holds."""
    for source in ("secured", "plain"):
        unit = f"csw-harvester@{source}"
        done = system.until(f"{unit}.service", Result="success", ExecMainStatus="0", ActiveState="inactive") and system.completed(source)
        check(f"timer, {source}: a run was started and is complete", done, system.report(source))
        check(f"timer, {source}: it was the timer that fired", system.show(f"{unit}.timer", "LastTriggerUSec").get("LastTriggerUSec"),
              system.report(source))
        lost = compare.differences(system.store(), source, catalogue.database)
        check(f"timer, {source}: the store has all {RECORDS} records", not lost, compare.shown(lost))
    check("sandbox: the catalogue's name was looked up by it", HOST in names.asked, names.asked)


def no_overlap(system, url):
    """Ticks that come while a run is at work start no second one."""
    unit = "csw-harvester@plain.service"
    system.must("overlap: the timer is stopped", "systemctl stop csw-harvester@plain.timer")
    system.until(unit, ActiveState="inactive")
    before = len(system.runs("plain"))
    system.settings("plain", url, f"--full {SLOW}")
    system.must("overlap: a slow run begins", f"systemctl start --no-block {unit}")
    check("overlap: it is at work", system.until(unit, ActiveState="activating", SubState="start"), system.report("plain"))
    at_work = system.show(unit, "InvocationID", "MainPID")
    ticked = system.show("csw-harvester@plain.timer", "LastTriggerUSec")
    system.must("overlap: the timer is started", "systemctl start csw-harvester@plain.timer")
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end and system.show("csw-harvester@plain.timer", "LastTriggerUSec") == ticked:
        time.sleep(0.1)
    check("overlap: a tick came", system.show("csw-harvester@plain.timer", "LastTriggerUSec") != ticked, system.report("plain"))
    system.must("overlap: a start by hand", f"systemctl start --no-block {unit}")
    check_equal("overlap: the same run is at work", system.show(unit, "InvocationID", "MainPID"), at_work, system.report("plain"))
    system.must("overlap: the timer is stopped again", "systemctl stop csw-harvester@plain.timer")
    credentials(system, at_work["MainPID"])
    check("overlap: the run ends", system.until(unit, ActiveState="inactive"), system.report("plain"))
    check_equal("overlap: it was one run, and complete", system.runs("plain")[before:], [("complete", 0)], system.report("plain"))


def credentials(system, plain_pid):
    """While both sources run: who can read the password."""
    unit = "csw-harvester@secured.service"
    secret = f"/run/credentials/{unit}/password"
    system.must("credentials: the timer is stopped", "systemctl stop csw-harvester@secured.timer")
    system.until(unit, ActiveState="inactive")
    settings = system.booted.path("/etc/csw-harvester/secured.env")
    kept = settings.read_text(encoding="utf-8")
    settings.write_text(kept.replace("--user", f"--full {SLOW} --user"), encoding="utf-8")
    system.must("credentials: a run begins", f"systemctl start --no-block {unit}")
    system.until(unit, ActiveState="activating", SubState="start")
    check_equal("credentials: root sees it", system.booted.run(f"cat {secret}").stdout, PASSWORD + "\n", system.report("secured"))
    for path in (secret, "/etc/csw-harvester/secured.password", "/etc/csw-harvester/secured.env"):
        refused = system.booted.run(f"setpriv --reuid=nobody --regid=nogroup --clear-groups cat {path}")
        check(f"credentials: another user may not read {path}", refused.returncode != 0 and "Permission denied" in refused.stderr,
              refused.stdout, refused.stderr)
    pid = system.show(unit, "MainPID")["MainPID"]
    own = system.booted.run(f"nsenter --target {pid} --mount ls /run/credentials").stdout.split()
    check_equal("credentials: a service sees its own", own, [unit])
    other = system.booted.run(f"nsenter --target {plain_pid} --mount ls /run/credentials").stdout.split()
    check_equal("credentials: and not those of another source", other, ["csw-harvester@plain.service"])
    environment = system.booted.path(f"/proc/{pid}/environ").read_bytes() + system.booted.path(f"/proc/{pid}/cmdline").read_bytes()
    check("credentials: neither command nor environment holds it", PASSWORD.encode() not in environment)
    users = {system.booted.run(f"stat -c %U:%u /proc/{one}").stdout for one in (pid, plain_pid)}
    check("credentials: both sources run as one dynamic user", len(users) == 1 and "csw-harvester:" in users.pop(), users)
    check("credentials: the run ends well", system.until(unit, ActiveState="inactive", Result="success"), system.report("secured"))
    settings.write_text(kept, encoding="utf-8")


def killed(system, url, catalogue):
    """SIGKILL in mid-run fails the unit; the next run is complete."""
    unit = "csw-harvester@plain.service"
    before = len(system.runs("plain"))
    system.settings("plain", url, f"--full {SLOW}")
    system.must("kill -9: a slow run begins", f"systemctl start --no-block {unit}")
    system.until(unit, ActiveState="activating", SubState="start")
    end = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < end and len(system.runs("plain")) == before:
        time.sleep(0.1)
    system.must("kill -9: it is killed", f"systemctl kill --signal=KILL {unit}")
    check("kill -9: the unit failed by the signal", system.until(unit, ActiveState="failed", Result="signal"), system.report("plain"))
    alerted(system, "kill -9", "plain", "signal", "KILL")
    system.settings("plain", url)
    done = system.start("plain")
    check_equal("kill -9: the next run is complete", (done.returncode, *system.outcome("plain")), (0, "success", "0"),
                system.report("plain"))
    check_equal("kill -9: the store knows both", [outcome for outcome, _ in system.runs("plain")[before:]], ["killed", "complete"])
    lost = compare.differences(system.store(), "plain", catalogue.database)
    check("kill -9: nothing is lost", not lost, compare.shown(lost))


def alerted(system, name, source, *words):
    """OnFailure= fired: the alert unit wrote its line, with priority 1."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    wanted = " ".join(["The harvest of", source, "failed:", *words]).strip()
    lines = []
    while time.monotonic() < end:
        lines = system.journal("-t", "csw-harvester-alert", "-p", "1").splitlines()
        if lines and lines[-1] == wanted:
            break
        time.sleep(0.1)
    check(f"{name}: the alert says: {wanted}", lines and lines[-1] == wanted, lines, system.report(source))


def ended_early(system, url):
    """75 is no failure."""
    alerts = system.journal("-t", "csw-harvester-alert")
    system.settings("plain", url, f"--full {SLOW}", MAX_RUNTIME=1)
    done = system.start("plain")
    check_equal("75: the run was stopped by its limit and did not fail", (done.returncode, *system.outcome("plain")),
                (0, "success", "75"), system.report("plain"))
    check_equal("75: the store knows it as partial", system.runs("plain")[-1:], [("partial", 75)])
    check_equal("75: nobody was alerted", system.journal("-t", "csw-harvester-alert"), alerts)


def stopped(system, url):
    """`systemctl stop` in mid-run is an end in good order."""
    unit = "csw-harvester@plain.service"
    system.settings("plain", url, f"--full {SLOW}")
    system.must("stop: a slow run begins", f"systemctl start --no-block {unit}")
    system.until(unit, ActiveState="activating", SubState="start")
    time.sleep(1)
    system.must("stop: it is stopped", f"systemctl stop {unit}")
    check_equal("stop: 75, and no failure", (*system.outcome("plain"), *system.runs("plain")[-1]), ("success", "75", "partial", 75),
                system.report("plain"))


def refused(system):
    """77 fires OnFailure=; so do settings that are no use."""
    secret = system.booted.path("/etc/csw-harvester/secured.password")
    secret.write_text("wrong\n", encoding="utf-8")
    done = system.start("secured")
    check_equal("77: the run failed", (done.returncode, *system.outcome("secured")), (1, "exit-code", "77"), system.report("secured"))
    alerted(system, "77", "secured", "exit-code", "77")
    secret.unlink()
    done = system.start("secured")
    check_equal("no password where one is named: 78", (done.returncode, *system.outcome("secured")), (1, "exit-code", "78"),
                system.report("secured"))
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    done = system.start("secured")
    check_equal("the password is right again: 0", (done.returncode, *system.outcome("secured")), (0, "success", "0"),
                system.report("secured"))

    system.settings("plain", "")
    done = system.start("plain")
    check_equal("an empty URL: 64", (done.returncode, *system.outcome("plain")), (1, "exit-code", "64"), system.report("plain"))
    alerted(system, "an empty URL", "plain", "exit-code", "64")
    done = system.start("nosuch")
    check_equal("a source without an env file: the unit fails", (done.returncode, system.outcome("nosuch")[0]), (1, "resources"),
                system.report("nosuch"))
    alerted(system, "a source without an env file", "nosuch", "resources")


def once(system, url):
    """Options for one run."""
    system.settings("plain", url)
    system.start("plain")
    said = system.journal("-u", "csw-harvester@plain.service")
    first, *_ = readme.commands(DEPLOY, "### One run with other options")
    # Two words more, as the runbook has them, to see that they are taken apart.
    system.type("once", [line.replace("geonetwork", "plain").replace("--full", "--full --settle 60") for line in first], {})
    added = system.journal("-u", "csw-harvester@plain.service")[len(said):]
    check("once: the run read everything again", f"{RECORDS} unchanged" in added, added)
    check("once: the options are gone", not system.booted.path("/run/csw-harvester-plain.once").exists())
    said = system.journal("-u", "csw-harvester@plain.service")
    system.start("plain")
    added = system.journal("-u", "csw-harvester@plain.service")[len(said):]
    check("once: the next run did not", "Harvest complete: 0 records" in added and f"{RECORDS} unchanged" not in added, added)


def damaged(system, catalogue):
    """The runbook's way out of a store that is damaged."""
    system.must("damaged: the timers are stopped", "systemctl stop 'csw-harvester@*.timer'")
    system.booted.path(units.STORE).write_bytes(b"SQLite format 3\0" + b"\xff" * 65_536)
    done = system.start("plain")
    check("damaged: the run fails with 74 or 78", done.returncode == 1 and system.outcome("plain")[1] in ("74", "78"),
          system.report("plain"))
    (block,) = readme.commands(DEPLOY, "### Damaged store")
    system.type("damaged", block, {})
    done = system.start("plain")
    check_equal("damaged: the next run is complete", (done.returncode, *system.outcome("plain")), (0, "success", "0"),
                system.report("plain"))
    lost = compare.differences(system.store(), "plain", catalogue.database)
    check("damaged: the new store has all", not lost, compare.shown(lost))


def metrics(system):
    """Metrics where node_exporter looks for them."""
    place = "/var/lib/prometheus/node-exporter"
    system.must("metrics: a folder as Debian's node_exporter has it", f"groupadd --force prometheus && install -d {place}")
    (block,) = readme.commands(DEPLOY, "## Watching it")
    system.type("metrics", block, {})
    done = system.start("plain")
    check_equal("metrics: the run is well", (done.returncode, *system.outcome("plain")), (0, "success", "0"), system.report("plain"))
    said = system.booted.run(f"setpriv --reuid=nobody --regid=nogroup --clear-groups cat {place}/csw-harvester-plain.prom")
    check("metrics: they are there, and node_exporter may read them",
          'csw_harvester_last_run_success{source="plain"} 1\n' in said.stdout, said.stdout, said.stderr)


def main():
    wrong = daemons.install("nginx", "openssl", "systemd-nspawn")
    if not check("systemd: systemd-nspawn, nginx and openssl are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    source, root = folder / "source", folder / "root"
    shutil.copytree(readme.TOP / "deploy", source / "deploy")
    (source / "target/release").mkdir(parents=True)
    shutil.copy(os.environ["HARVESTER"], source / "target/release/csw-harvester")
    authority = daemons.Authority(folder / "authority")
    (root / "etc").mkdir(parents=True)
    (root / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\n", encoding="ascii")
    (root / "usr/local/share/ca-certificates").mkdir(parents=True)
    shutil.copy(authority.path, root / "usr/local/share/ca-certificates/authority.crt")
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(NameServer())
        catalogue = stack.enter_context(Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)))
        gate = stack.enter_context(front(folder / "nginx", catalogue, authority))
        system = System(stack.enter_context(Booted(folder / "boot", root, source)), folder)
        system.must("systemd: the authority is one of the system's roots", "update-ca-certificates")
        install(system, catalogue.url, f"https://{HOST}:{gate.ports[0]}/csw")
        unit_files(system)
        harvested(system, catalogue, names)
        no_overlap(system, catalogue.url)
        killed(system, catalogue.url, catalogue)
        ended_early(system, catalogue.url)
        stopped(system, catalogue.url)
        refused(system)
        once(system, catalogue.url)
        metrics(system)
        damaged(system, catalogue)


checks.run(main)
