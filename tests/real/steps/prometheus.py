"""The alerts and the dashboard of deploy/prometheus: promtool reads them, and plays the courses of things of prometheus.test.yml.

promtool comes with Debian's prometheus, which is installed by apt where it is missing. That each metric is one of the README's is watched
by `cargo test`.
"""

import json
import os
import pathlib
import re
import subprocess

import checks
import daemons
from checks import check, check_equal
from readme import TOP

COMMAND_SECONDS_MAX = 60
RULES = TOP / "deploy/prometheus/csw-harvester.rules.yml"
DASHBOARD = TOP / "deploy/prometheus/csw-harvester.dashboard.json"
COURSES = TOP / "tests/real/prometheus.test.yml"


def promtool(name, *words):
    """One call that must go well; what it said."""
    done = subprocess.run([daemons.program("promtool"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=COMMAND_SECONDS_MAX)
    check_equal(name, done.returncode, 0, done.stdout, done.stderr)
    return done.stdout + done.stderr


def rules():
    """The rules, and that each is played to."""
    said = promtool("rules: promtool check rules", "check", "rules", RULES)
    alerts = set(re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8")))
    check(f"rules: it found all {len(alerts)}", alerts and f"{len(alerts)} rules found" in said, said)
    promtool("rules: promtool test rules", "test", "rules", COURSES)
    played = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", COURSES.read_text(encoding="utf-8"))
    check_equal("rules: each alert is brought about by a test", alerts - set(played), set())


def dashboard():
    """The queries of the dashboard are such that Prometheus understands them."""
    queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] for target in panel["targets"]]
    # promtool parses an expression without a server only as that of a rule.
    path = pathlib.Path(os.environ["REAL_DIR"]) / "queries.yml"
    recorded = [{"record": f"query{number}", "expr": query} for number, query in enumerate(queries)]
    path.write_text(json.dumps({"groups": [{"name": "queries", "rules": recorded}]}), encoding="utf-8")
    said = promtool("dashboard: promtool understands its queries", "check", "rules", path)
    check(f"dashboard: all {len(queries)}", queries and f"{len(queries)} rules found" in said, said)


def main():
    wrong = daemons.install("promtool")
    if check("prometheus: promtool is there", not wrong, wrong):
        rules()
        dashboard()


checks.run(main)
