"""Ticks without pause while a catalogue changes nine times a second: nothing that it shows may be lost.

Inserts, updates and deletions by CSW-T with the present second as their stamp, so that many share one and pages move
while they are read. No inventory helps the watermark: at rest and past the settling time one more tick must bring the
store level. Only what was deleted remains then, since a filter on stamps cannot see it go, until everything is compared.
"""

import collections
import os
import pathlib
import random
import threading
import time

import checks
import compare
import expect
import records
from catalogue import Catalogue, now
from checks import check, check_equal, note
from harvester import tick

# Enough pages that the first tick still reads when dozens of edits have moved records from its read part to the end.
RECORDS = 1500
EDITS_A_SECOND = 9
EDITS_MIN = 180
TICKS_MIN = 2
EDITING_SECONDS_MAX = 180
SETTLE_SECONDS = 2
# A stamp must be seen before it counts as settled. An edit that took longer than this is made again with a new stamp.
VISIBLE_SECONDS_MAX = 1.0
AGAIN_MAX = 5
TICKS_MAX = 400


class Editor(threading.Thread):
    """Makes EDITS_MIN changes and goes on until `enough` is set, evenly spaced as far as the catalogue keeps up.

    `done` counts them by kind; `deleted` are the identifiers that went.
    """

    def __init__(self, catalogue):
        super().__init__(daemon=True)
        self.catalogue = catalogue
        self.enough = threading.Event()
        self.done = collections.Counter()
        self.deleted = set()
        self.seconds = 0.0
        self.error = None
        self._live = sorted(catalogue.stamps())
        self._random = random.Random(20150101)

    def run(self):
        start = time.monotonic()
        try:
            for number in range(EDITING_SECONDS_MAX * EDITS_A_SECOND):
                late = time.monotonic() - start > EDITING_SECONDS_MAX
                if late or (number >= EDITS_MIN and self.enough.is_set()):
                    return
                time.sleep(max(0.0, start + number / EDITS_A_SECOND - time.monotonic()))
                self._edit(number)
        except Exception as error:
            self.error = error
        finally:
            self.seconds = time.monotonic() - start

    def _edit(self, number):
        choice = self._random.random()
        if choice < 0.5:
            identifier = f"churn-{number:06}"
            self._put(self.catalogue.insert, identifier, number)
            self._live.append(identifier)
            self.done["inserts"] += 1
        elif choice < 0.85:
            self._put(self.catalogue.update, self._random.choice(self._live), number)
            self.done["updates"] += 1
        else:
            identifier = self._live.pop(self._random.randrange(len(self._live)))
            self.catalogue.delete(identifier)
            self.deleted.add(identifier)
            self.done["deletions"] += 1

    def _put(self, put, identifier, number):
        kind = ("dc", "iso")[number % 2]
        for attempt in range(AGAIN_MAX):
            began = time.monotonic()
            put(records.Record(identifier, now(), f"Edit {number}.{attempt}", kind))
            if time.monotonic() - began <= VISIBLE_SECONDS_MAX:
                return
            put = self.catalogue.update
            self.done["made again"] += 1


def harvest_while(editor, run):
    """Ticks until the editor is done."""
    editor.start()
    ticks = []
    while editor.is_alive() and len(ticks) < TICKS_MAX:
        ticks.append(run())
        if len(ticks) >= TICKS_MIN:
            editor.enough.set()
    editor.enough.set()
    editor.join(EDITING_SECONDS_MAX)
    return ticks


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    store = folder / "churn.db"
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 3600)) as catalogue:
        def run(reconcile="never"):
            return tick(catalogue.url, "--db", store, "--source", "churn", "--page-size", 20, "--settle", SETTLE_SECONDS,
                        "--reconcile", reconcile, folder=folder)

        editor = Editor(catalogue)
        ticks = harvest_while(editor, run)
        edits = editor.done["inserts"] + editor.done["updates"] + editor.done["deletions"]
        note(f"{len(ticks)} ticks during {edits} edits in {editor.seconds:.1f} s: {dict(editor.done)}")
        check(f"churn: at least {EDITS_MIN} edits and {TICKS_MIN} ticks met",
              edits >= EDITS_MIN and len(ticks) >= TICKS_MIN and editor.error is None, repr(editor.error))
        failed = [done for done in ticks if done.exit_code != 0]
        check(f"churn: each tick under change ends with 0 ({len(ticks)} ticks)", ticks and not failed,
              *[done.report() for done in failed[:3]])
        marks = [done.summary.get("watermark") for done in ticks]
        check("churn: the watermark never goes back", None not in marks and marks == sorted(marks), marks)

        # The last second edited has to end first, then the settling time.
        time.sleep(SETTLE_SECONDS + 2)
        done = run()
        check_equal("churn: the tick at rest ends with 0", done.exit_code, 0, done.report())
        if not check("churn: there is a store", store.exists(), done.report()):
            return
        newest = max(catalogue.stamps().values())
        check_equal("churn: the watermark is the newest stamp", done.summary.get("watermark"), newest, done.report())
        lost = compare.differences(store, "churn", catalogue.database)
        check(f"churn: the store holds all {len(catalogue.stamps())} records with their stamps", not lost,
              compare.shown(lost), done.report())
        remain = compare.extra(store, "churn", catalogue.database)
        check("churn: of the others only deleted ones remain", remain <= editor.deleted, remain - editor.deleted)
        before = catalogue.requests_served()
        done = run()
        expect.quiet("churn, second tick at rest", done, newest, catalogue.requests_served() - before)
        done = run("always")
        check_equal(f"churn, everything compared: exit 0, {len(remain)} deleted, nothing else",
                    (done.exit_code, *map(done.summary.get, ("new", "updated", "deleted"))), (0, 0, 0, len(remain)), done.report())
        expect.same("churn, everything compared", store, "churn", catalogue)
        buried = {row[0] for row in compare.read(store, "SELECT identifier FROM tombstones WHERE source = 'churn'")}
        check_equal("churn, everything compared: the tombstones are those that went", buried, remain)


checks.run(main)
