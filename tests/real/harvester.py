"""Runs the binary once and keeps everything it said.

The binary's path comes from HARVESTER. Its environment is cleared but for what a process needs, so that no proxy or log
setting of the caller changes an outcome. Left to the steps: what the outcome should have been.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import time

TICK_SECONDS_MAX = 300
_LOG_LINES_SHOWN_MAX = 40
_LOOK_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Tick:
    """One run: `exit_code` is None when it had to be ended, `summary` is the JSON object of stdout or empty."""

    command: str
    exit_code: int | None
    stdout: str
    stderr: str
    summary: dict

    def complete_line(self):
        """The last log line from `Harvest complete` on; the whole line when it says something else."""
        lines = self.stderr.strip().splitlines()
        last = lines[-1] if lines else ""
        at = last.find("Harvest complete")
        return last[at:] if at >= 0 else last

    def report(self):
        """What is needed to see why a run went wrong."""
        log = self.stderr.splitlines()
        shown = log[-_LOG_LINES_SHOWN_MAX:]
        ended = "ended by force" if self.exit_code is None else f"exit {self.exit_code}"
        return "\n".join(
            [f"{self.command}: {ended}", f"stdout: {self.stdout[:2000]}",
             f"stderr, the last {len(shown)} of {len(log)} lines:", *shown]
        )


def tick(url, *options, folder, environment=None):
    """Runs `harvest URL --json OPTIONS` in `folder`, for at most TICK_SECONDS_MAX. `environment` is added to what a process needs."""
    command, environment = _prepared(url, options, folder, environment)
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TICK_SECONDS_MAX,
        )
        exit_code, stdout, stderr = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        exit_code, stdout, stderr = None, late.stdout or b"", late.stderr or b""
    return _tick(command, exit_code, stdout, stderr)


def killed(reached, url, *options, folder):
    """As `tick`, but ended by kill -9 as soon as `reached()` is true; the exit code is -9 then."""
    command, environment = _prepared(url, options, folder, None)
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    until = time.monotonic() + TICK_SECONDS_MAX
    while process.poll() is None and not reached() and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    process.kill()
    stdout, stderr = process.communicate()
    return _tick(command, process.returncode, stdout, stderr)


def _prepared(url, options, folder, environment):
    command = [os.environ["HARVESTER"], "harvest", url, "--json", *map(str, options)]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    return command, {**kept, "RUST_LOG": "info", **(environment or {})}


def _tick(command, exit_code, stdout, stderr):
    stdout = stdout.decode(errors="backslashreplace")
    return Tick(shlex.join(command), exit_code, stdout, stderr.decode(errors="backslashreplace"), _summary(stdout))


def _summary(stdout):
    lines = stdout.splitlines()
    if len(lines) != 1:
        return {}
    try:
        summary = json.loads(lines[0])
    except ValueError:
        return {}
    return summary if isinstance(summary, dict) else {}
