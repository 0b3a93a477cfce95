"""Metrics through Prometheus' own programs: promtool reads and lints them, node_exporter gathers the files of two sources, a Pushgateway
keeps what it was sent; through a success, a failure and a call that makes no sense. And the log line of a run of more than ten seconds.
"""

import os
import pathlib
import re
import subprocess
import time
import urllib.request

import checks
import daemons
import records
from catalogue import Catalogue
from checks import check, check_equal
from harvester import tick

RECORDS = 60
FAILURE = 69
COMMAND_SECONDS_MAX = 60
# The second source has a name that must be escaped, in the text as in the gateway's path.
NAMES = ("plain", 'a/b "c"\\d')

_SUCCEEDED = "csw_harvester_last_success_timestamp_seconds"
_SERIES = re.compile(r'(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)')
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def lint(name, text):
    """promtool finds nothing to say against a text."""
    done = subprocess.run([daemons.program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True,
                          timeout=COMMAND_SECONDS_MAX)
    said = done.stdout + done.stderr
    check(f"{name}: promtool check metrics has nothing to say", done.returncode == 0 and not said.strip(), said, text)


def page(port):
    """What a daemon shows on /metrics."""
    with _open(f"http://127.0.0.1:{port}/metrics", timeout=COMMAND_SECONDS_MAX) as answer:
        return answer.read().decode()


def ours(text):
    """The lines about the harvester: comments and series."""
    return [line for line in text.splitlines() if "csw_harvester_" in line]


def value(text, name, source):
    """The value of the series of a source that has no further labels of ours; None when there is none."""
    label = 'source="' + source.replace("\\", "\\\\").replace('"', '\\"') + '"'
    found = [match for match in map(_SERIES.fullmatch, text.splitlines())
             if match and match["name"] == name and label in (match["labels"] or "")]
    return float(found[0]["value"]) if len(found) == 1 else None


def exporter(folder, textfiles):
    """node_exporter with nothing but the textfile collector."""
    def command(ports):
        return [daemons.program("prometheus-node-exporter"), "--collector.disable-defaults", "--collector.textfile",
                f"--collector.textfile.directory={textfiles}", f"--web.listen-address=127.0.0.1:{ports[0]}"]

    return daemons.Daemon(folder, 1, command)


def pushgateway(folder, *options):
    """A Pushgateway that forgets everything with its end."""
    def command(ports):
        return [daemons.program("prometheus-pushgateway"), f"--web.listen-address=127.0.0.1:{ports[0]}", *options]

    return daemons.Daemon(folder, 1, command)


class Step:
    """Runs of two sources, a file and a push each."""

    def __init__(self, folder, node, gateway):
        self.folder = folder
        self.textfiles = folder / "textfiles"
        self.node = node.ports[0]
        self.gateway = gateway.ports[0]

    def tick(self, number, url, *options):
        base = f"http://127.0.0.1:{self.gateway}"
        push = base if number == 0 else f"{base}/metrics/job/geo/team/maps"
        return tick(url, "--source", NAMES[number], "--metrics-file", self.textfiles / f"csw-{number}.prom", "--metrics-push", push,
                    "--retries", "0", *options, folder=self.folder / "runs")

    def told(self, name, done, number, expected):
        """File, node_exporter and Pushgateway tell the same of a run, and that."""
        check(f"{name}: no warning about metrics", "the metrics could not" not in done.stderr, done.report())
        text = (self.textfiles / f"csw-{number}.prom").read_text(encoding="utf-8")
        lint(name, text)
        shown = {"file": text, "node_exporter": page(self.node), "Pushgateway": page(self.gateway)}
        for place, text in shown.items():
            found = {metric: value(text, metric, NAMES[number]) for metric in expected}
            check_equal(f"{name}: the {place} tells of it", found, expected, "\n".join(ours(text)))
        return shown


def successes(step, url):
    """The first ticks of both sources."""
    expected = {
        "csw_harvester_last_run_exit_code": 0, "csw_harvester_last_run_success": 1, "csw_harvester_records": RECORDS,
        "csw_harvester_last_run_matched_records": RECORDS, "csw_harvester_problems": 0,
        # 2015-01-01T00:59:00Z
        "csw_harvester_watermark_timestamp_seconds": 1420073940,
    }
    done = step.tick(0, url)
    step.told("success", done, 0, expected)

    done = step.tick(1, url, "--page-size", "5", "--delay", "900")
    lines = [line for line in done.stderr.splitlines() if re.search(r"INFO  \d+ of 60 records, [\d.]+ a second, \d+ s left$", line)]
    check("a run of more than ten seconds says how far it is", 1 <= len(lines) <= 2, done.report())
    shown = step.told("success of another source", done, 1, expected)
    check('the gateway has a job of its own choice', 'job="geo"' in shown["Pushgateway"] and 'team="maps"' in shown["Pushgateway"])
    check('and one of ours', 'job="csw_harvester"' in shown["Pushgateway"])
    node = shown["node_exporter"]
    check_equal("two files: node_exporter finds no fault", re.findall(r"^node_textfile_scrape_error (\S+)", node, re.M), ["0"])
    sources = [line for line in ours(node) if line.startswith("csw_harvester_build_info{")]
    check_equal("two files: both sources are gathered", len(sources), 2, "\n".join(sources))
    lint("two files", "".join(line + "\n" for line in ours(node)))


def failures(step, url):
    """The catalogue is gone, and then the options make no sense: the last success stays."""
    before = [value(page(step.gateway), _SUCCEEDED, name) for name in NAMES]
    check("the time of the last success is told", all(before), before)
    for number, succeeded in enumerate(before):
        expected = {"csw_harvester_last_run_exit_code": FAILURE, "csw_harvester_last_run_success": 0, _SUCCEEDED: succeeded,
                    "csw_harvester_records": RECORDS}
        step.told(f"failure of source {number}", step.tick(number, url), number, expected)
    done = step.tick(0, url, "--page-size", "0")
    step.told("no sense", done, 0, {"csw_harvester_last_run_exit_code": 64, _SUCCEEDED: before[0], "csw_harvester_records": None})

    # Without a file nothing of the last success is known here, and it stays where it was pushed to.
    push = ("--source", NAMES[1], "--metrics-push", f"http://127.0.0.1:{step.gateway}/metrics/job/geo/team/maps")
    done = tick(url, "--page-size", "0", *push, folder=step.folder / "runs")
    text = page(step.gateway)
    found = [value(text, name, NAMES[1]) for name in ("csw_harvester_last_run_exit_code", _SUCCEEDED, "csw_harvester_records")]
    check_equal("no sense and no file: the gateway keeps the rest", found, [64, before[1], RECORDS], "\n".join(ours(text)))


def secure(folder):
    """A Pushgateway that speaks TLS, with a certificate that --ca-file vouches for. The catalogue need not be there."""
    authority = daemons.Authority(folder / "authority")
    days = [time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + 86_400 * days)) for days in (-2, 20)]
    certificate, key = authority.certificate("gateway", "IP:127.0.0.1", *days)
    config = folder / "web.yml"
    config.write_text(f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n", encoding="utf-8")
    with pushgateway(folder / "secure", f"--web.config.file={config}") as gateway:
        options = ("--metrics-push", f"https://127.0.0.1:{gateway.ports[0]}", "--retries", "0")
        done = tick("http://127.0.0.1:1/csw", *options, "--ca-file", authority.path, folder=folder / "runs")
        check("TLS: pushed with --ca-file", done.exit_code == FAILURE and "pushed" not in done.stderr, done.report())
        done = tick("http://127.0.0.1:1/csw", *options, folder=folder / "runs")
        refused = "could not be pushed" in done.stderr and "UnknownIssuer" in done.stderr
        check("TLS: a warning without it, and the run's own exit code", done.exit_code == FAILURE and refused, done.report())


def main():
    wrong = daemons.install("openssl", "promtool", "prometheus-node-exporter", "prometheus-pushgateway")
    if not check("metrics: openssl, promtool, node_exporter and Pushgateway are there", not wrong, wrong):
        return
    folder = pathlib.Path(os.environ["REAL_DIR"])
    (folder / "textfiles").mkdir()
    with exporter(folder / "node", folder / "textfiles") as node, pushgateway(folder / "gateway") as gateway:
        step = Step(folder, node, gateway)
        with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
            successes(step, catalogue.url)
        failures(step, catalogue.url)
    secure(folder)


checks.run(main)
