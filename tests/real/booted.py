"""A real systemd as process 1, booted over an overlay of a root, this machine's own or another, for the length of a `with` block.

The mounts are made in a mount namespace that ends with the boot, so that nothing of them is ever seen outside, however this ends. The
network is that of this machine: a catalogue on 127.0.0.1 is reached. Left to the steps: what is installed and what is looked at.
Needs root, overlayfs and systemd-nspawn.
"""

import os
import pathlib
import signal
import subprocess
import time

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20
COMMAND_SECONDS_MAX = 120

# Units of the machine itself are not started, and what it would do to a clock, a network or devices that are not its own is off.
_BOOT = """
set -eu
work=$1 lower=$2 root=$3 source=$4
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/upper,workdir=$work/work" "$work/root"
units=$work/root/etc/systemd/system
rm -rf "$units"/*.wants "$work/root/etc/csw-harvester" "$work/root/var/log/journal"
: >"$work/root/etc/machine-id"
ln -sf /lib/systemd/system/timers.target "$units/default.target"
for unit in systemd-timesyncd systemd-resolved systemd-networkd systemd-udevd; do ln -sf /dev/null "$units/$unit.service"; done
rm -f "$work/root/etc/resolv.conf"
cp -a --no-preserve=ownership "$root/." "$work/root/"
mkdir "$work/root/source"
exec systemd-nspawn --quiet --directory="$work/root" --register=no --keep-unit --machine="boot$$" --resolv-conf=off \
  --bind-ro="$source:/source" --boot --console=pipe
"""


class Booted:
    """Files of the folder `root` lie over those of `lower`, the folder `source` is /source there."""

    def __init__(self, folder, root, source, lower="/"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        (self.folder / "mounts").mkdir()
        self._folders = [lower, root, source]
        self._process = None
        self._leader = None

    def __enter__(self):
        with open(self.folder / "console.log", "wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "bash", "-c", _BOOT, "boot",
                 self.folder / "mounts", *self._folders],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        self._pid_file = pathlib.Path(os.environ["REAL_PIDS"]) / str(self._process.pid)
        self._pid_file.touch()
        try:
            self._await()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        self._stop()

    def _await(self):
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end and self._process.poll() is None:
            self._leader = self._child()
            if self._leader is not None:
                state = self.run("systemctl is-system-running").stdout.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.1)
        raise RuntimeError(f"systemd did not start: {self._console()}")

    def _child(self):
        """Process 1 of the boot, as seen from here."""
        pid = self._process.pid
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            name = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
        except OSError:
            return None
        return int(children[0]) if children and name == "systemd-nspawn" else None

    def _console(self):
        return (self.folder / "console.log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def _stop(self):
        # systemd-nspawn takes SIGTERM for an orderly power-off of what it booted.
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            if self._leader is not None and self._child() == self._leader:
                os.kill(self._leader, signal.SIGKILL)
            self._process.kill()
            self._process.wait(STOP_SECONDS_MAX)
        self._pid_file.unlink(missing_ok=True)

    def run(self, command, folder="/"):
        """A line of bash as root in there; the finished process with its stdout and stderr as text."""
        return subprocess.run(
            ["nsenter", "--target", str(self._leader), "--all", "--root", "bash", "-c", f"cd {folder} && {{ {command}\n}}"],
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS_MAX,
        )

    def path(self, inside):
        """The path from here of an absolute one in there."""
        return pathlib.Path(f"/proc/{self._leader}/root{inside}")
