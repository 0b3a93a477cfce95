"""What steps do with the project's units in a booted system: type what the README says, fill in settings, look at units, journal and store.

Left to the steps: what is to come of it.
"""

import shlex
import shutil
import time

import compare
from checks import check

DEPLOY = "deploy/README.md"
WAIT_SECONDS_MAX = 90
STORE = "/var/lib/private/csw-harvester/harvest_state.db"

_COPY = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=30).backup(sqlite3.connect(sys.argv[2]))"


class System:
    """The booted system, and what this step asks of it."""

    def __init__(self, booted, folder):
        self.booted = booted
        self._folder = folder

    def must(self, name, command):
        """A command that has to succeed; its stdout."""
        done = self.booted.run(command, "/source")
        check(name, done.returncode == 0, f"{command}: exit {done.returncode}", done.stdout, done.stderr)
        return done.stdout

    def type(self, name, commands, contents):
        """What the README says, as it stands. An editor leaves what `contents` has for a file; one that it has None for is not made."""
        for command in commands:
            command = command.replace("sudo ", "")
            words = shlex.split(command)
            wanted = contents.get(words[-1], "")
            if words[0] == "sudoedit":
                if wanted is not None:
                    self.booted.path(words[-1]).write_text(wanted, encoding="utf-8")
            elif wanted is not None:
                self.must(f"{name}: {command}", command)

    def settings(self, source, url, options="", **more):
        """The env file of a source, changed in place, as an editor does."""
        lines = [f"URL={url}", f'OPTIONS="{options}"', *(f"{key}={value}" for key, value in more.items())]
        self.booted.path(f"/etc/csw-harvester/{source}.env").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def show(self, unit, *names):
        """Properties of a unit, by name."""
        said = self.booted.run(f"systemctl show {unit} {' '.join(f'-p {name}' for name in names)}").stdout
        return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)

    def until(self, unit, **wanted):
        """Waits until properties of a unit are as wanted; whether they came to be."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < end:
            if self.show(unit, *wanted) == wanted:
                return True
            time.sleep(0.1)
        return False

    def journal(self, *words):
        """The journal's messages, the oldest first."""
        return self.booted.run(f"journalctl --no-pager -o cat {' '.join(words)}").stdout

    def start(self, source):
        """One run to its end, the timer not asked."""
        return self.booted.run(f"systemctl start csw-harvester@{source}.service")

    def outcome(self, source):
        """How the last run of a source ended, to systemd."""
        found = self.show(f"csw-harvester@{source}.service", "Result", "ExecMainCode", "ExecMainStatus")
        return found.get("Result"), found.get("ExecMainStatus")

    def store(self):
        """A copy of the store as it is now; SQLite would not find the file itself from out here. None while there is no store."""
        if not self.booted.path(STORE).exists():
            return None
        done = self.booted.run(f"python3 -c '{_COPY}' {STORE} /run/copy.db")
        if done.returncode != 0:
            raise RuntimeError(f"the store cannot be copied: {done.stderr}")
        return shutil.copy(self.booted.path("/run/copy.db"), self._folder / "copy.db")

    def runs(self, source):
        """(outcome, exit code) of each run that the store knows."""
        store = self.store()
        return compare.read(store, f"SELECT outcome, exit_code FROM runs WHERE source = '{source}' ORDER BY rowid") if store else []

    def report(self, source):
        return self.booted.run(f"systemctl status --no-pager -l csw-harvester@{source}.service; journalctl -n 40 --no-pager").stdout

    def completed(self, source):
        """Waits until the store has a complete run of a source; whether it came."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < end:
            if ("complete", 0) in self.runs(source):
                return True
            time.sleep(0.2)
        return False
