"""What a watermark cannot see, against pycsw: deletions, back-dated and undated inserts, edits that leave the stamp alone.

While one process changes the catalogue by CSW-T, ticks follow one another, in both schemas; one `--reconcile always` at
rest must make the store the catalogue's equal, and no tombstone may ever name a record that was there throughout. Then,
each by itself: what `auto` notices, the guards against mass deletion, kill -9 within an inventory, and pycsw 3.0.
"""

import os
import pathlib
import time

import checks
import compare
import expect
import records
from catalogue import Catalogue
from catalogue30 import Catalogue30
from checks import check, check_equal, note
from harvester import killed, tick
from mutator import CHANGES_MIN, CHANGING_SECONDS_MAX, TITLE_PROPERTY, Mutator, ten_years_ago

RECORDS = 1200
PAGE_SIZE = 100
SCHEMAS = {"csw": records.CSW, "iso": records.GMD}
SETTLE_SECONDS = 2

TICKS_MIN = 8
TICKS_MAX = 200
# Of so many ticks of a source one compares everything, the others as `auto` decides.
ALWAYS_EVERY = 3

FEW_RECORDS = 400
GUARDED_GONE = 160
KILLED_CHANGES = 15
# Of an inventory of RECORDS / PAGE_SIZE pages.
KILL_AFTER_PAGES = 4
DELAY_MS = 100

QUIET_REQUESTS = 2
EX_DATAERR = 65


def up_to_yesterday(count):
    """Old records and a newer one, so that a stamp of ten years ago lies behind the watermark."""
    yesterday = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 86_400))
    return [*records.series(count - 1, ("dc", "iso"), 60), records.Record("record-yesterday", yesterday, "Yesterday", "dc")]


class Source:
    """One catalogue in one schema (or version), harvested into one store under one name."""

    def __init__(self, catalogue, store, name, *options):
        self.catalogue, self.store, self.name = catalogue, store, name
        self.ever_held = set()
        self.options = ("--db", store, "--source", name, "--page-size", PAGE_SIZE, "--settle", SETTLE_SECONDS, *options)

    def run(self, *options):
        done = tick(self.catalogue.url, *self.options, *options, folder=self.store.parent)
        self.ever_held |= self.held().keys()
        return done

    def held(self):
        """Identifier -> changed_seq of records."""
        return dict(compare.read(self.store, "SELECT identifier, changed_seq FROM records WHERE source = ?", self.name))

    def buried(self):
        """Identifier -> changed_seq of tombstones."""
        return dict(compare.read(self.store, "SELECT identifier, changed_seq FROM tombstones WHERE source = ?", self.name))

    def risen(self, seq):
        """How many of its records and tombstones have a newer changed_seq than this."""
        return sum(one > seq for one in [*self.held().values(), *self.buried().values()])

    def newest_seq(self):
        """The newest changed_seq of the whole store."""
        statement = "SELECT max(changed_seq) FROM (SELECT changed_seq FROM records UNION ALL SELECT changed_seq FROM tombstones)"
        return compare.read(self.store, statement)[0][0]

    def watermark(self):
        return compare.read(self.store, "SELECT watermark FROM harvest_state WHERE source = ?", self.name)[0][0]


def said(done):
    """What a run says of itself: exit code, new, updated, deleted, reconciled."""
    return (done.exit_code, *map(done.summary.get, ("new", "updated", "deleted", "reconciled")))


def cost(done):
    return f"{done.summary.get('requests')} requests, {done.summary.get('bytes')} bytes"


def step_of(name, before, after, ever_deleted):
    """One tick's changes to (held, buried): a line for each that should not be."""
    held, buried = after
    newest = max([0, *before[0].values(), *before[1].values()])
    faults = [f"{name}: {one} is held and buried" for one in held.keys() & buried.keys()]
    faults += [f"{name}: {one} was never deleted and is buried" for one in buried.keys() - ever_deleted]
    moved = (buried.keys() - before[1].keys()) | (held.keys() - before[0].keys())
    faults += [f"{name}: {one} went or came with changed_seq {buried.get(one, held.get(one))}, {newest} was there before"
               for one in moved if buried.get(one, held.get(one, 0)) <= newest]
    # What left one table without entering the other is lost.
    faults += [f"{name}: {one} left the records and has no tombstone" for one in before[0].keys() - held.keys() - buried.keys()]
    faults += [f"{name}: {one} left the tombstones and is not held" for one in before[1].keys() - buried.keys() - held.keys()]
    return faults


def under_change(catalogue, sources, mutator):
    """Ticks, the sources in turn, until the mutator is done; what was wrong after each."""
    ticks, faults = [], []
    states = {source.name: (source.held(), source.buried()) for source in sources}
    mutator.start()
    while mutator.is_alive() and len(ticks) < TICKS_MAX:
        number = len(ticks)
        source = sources[number % len(sources)]
        always = number // len(sources) % ALWAYS_EVERY == ALWAYS_EVERY - 1
        ticks.append(source.run("--reconcile", "always" if always else "auto"))
        state = (source.held(), source.buried())
        # Asked for only now: what was deleted meanwhile may be buried already.
        faults += step_of(f"tick {number}", states[source.name], state, set(mutator.ever_deleted))
        states[source.name] = state
        if len(ticks) >= TICKS_MIN:
            mutator.enough.set()
    mutator.enough.set()
    mutator.join(CHANGING_SECONDS_MAX)
    note(f"{len(ticks)} ticks, {sum(done.summary.get('reconciled') is True for done in ticks)} with an inventory, during "
         f"{sum(mutator.done.values())} changes: {dict(mutator.done)}")
    check(f"under change: at least {CHANGES_MIN} changes of each kind there is and {TICKS_MIN} ticks met",
          mutator.error is None and sum(mutator.done.values()) >= CHANGES_MIN and len(ticks) >= TICKS_MIN
          and len(mutator.done) == len(set(mutator.CHANGES)), repr(mutator.error))
    check("under change: deletions are noticed", any(done.summary.get("deleted") for done in ticks))
    failed = [done for done in ticks if done.exit_code != 0]
    check(f"under change: each of {len(ticks)} ticks ends with 0", not failed, *[done.report() for done in failed[:3]])
    check("under change: no tombstone of what was there throughout, nothing lost, changed_seq rises", not faults,
          compare.shown(faults))


def equal(name, source, ever_deleted):
    """The store is the catalogue: identifiers, stamps, titles, content; tombstones name what it held and the catalogue deleted."""
    expect.same(name, source.store, source.name, source.catalogue)
    if source.name in SCHEMAS:
        expect.same_documents(name, source.store, source.name, source.catalogue.documents(SCHEMAS[source.name]))
    buried = source.buried().keys()
    wanted = (ever_deleted & (source.ever_held | buried)) - source.catalogue.stamps().keys()
    check_equal(f"{name}: tombstones of the {len(wanted)} deleted, and of nothing else", buried ^ wanted, set())


def at_rest(source, ever_deleted):
    """By order everything is compared once; then it is quiet."""
    name = f"{source.name} at rest"
    done = source.run("--reconcile", "always")
    check_equal(f"{name}: --reconcile always ends with 0 and says so", (done.exit_code, done.summary.get("reconciled")),
                (0, True), done.report())
    note(f"{name}: --reconcile always found {said(done)[1:4]} (new, updated, deleted) in {cost(done)}")
    equal(name, source, ever_deleted)
    quiet(name, source)


def quiet(name, source):
    before = source.catalogue.requests_served()
    done = source.run()
    served = source.catalogue.requests_served() - before
    check_equal(f"{name}: a quiet tick changes nothing", said(done), (0, 0, 0, 0, False), done.report())
    check_equal(f"{name}: a quiet tick takes {QUIET_REQUESTS} requests, said and served",
                (done.summary.get("requests"), served), (QUIET_REQUESTS, QUIET_REQUESTS), done.report())


def noticed(name, source, wanted, ever_deleted):
    """The next tick without any order brings exactly this."""
    seq = source.newest_seq()
    done = source.run()
    check_equal(f"{name}: (new, updated, deleted) is {wanted}", said(done), (0, *wanted, True), done.report())
    check_equal(f"{name}: changed_seq rises with it, and with nothing else", source.risen(seq), sum(wanted))
    note(f"{name}: {cost(done)}")
    equal(name, source, ever_deleted)
    quiet(name, source)


def one_by_one(catalogue, sources, record):
    """What `auto` notices by itself, each change alone; then everything is compared by order, and nothing found."""
    for source in sources:
        name = f"{source.name}, {len(catalogue.stamps())} records"
        done = source.run()
        check_equal(f"{name}: first tick", said(done)[:2], (0, len(catalogue.stamps())), done.report())
        note(f"{name}: {cost(done)}")
        quiet(name, source)
    old = records.Record("alone-old", ten_years_ago(), "Back-dated <A&B>", "dc")
    undated = records.Record("alone-undated", None, "Undated", "iso")
    changes = (
        ("one deleted", lambda: catalogue.delete(record.identifier), (0, 0, 1)),
        ("one inserted with a stamp ten years old", lambda: catalogue.insert(old), (1, 0, 0)),
        ("one inserted without a stamp", lambda: catalogue.insert(undated), (1, 0, 0)),
        ("the deleted one inserted again as it was", lambda: catalogue.insert(record), (1, 0, 0)),
    )
    for what, change, wanted in changes:
        change()
        for source in sources:
            noticed(f"{source.name}, {what}", source, wanted, {record.identifier})
    for source in sources:
        before = (source.held(), source.buried())
        done = source.run("--reconcile", "always")
        check_equal(f"{source.name}, by order: nothing is found", said(done), (0, 0, 0, 0, True), done.report())
        check(f"{source.name}, by order: every row is left alone", before == (source.held(), source.buried()))
        note(f"{source.name}, by order: {cost(done)}")


def refused(name, source, gone, held):
    """65, and the store as before."""
    before = (source.held(), source.buried(), source.watermark())
    done = source.run()
    check_equal(f"{name}: exit {EX_DATAERR}, nothing deleted", (done.exit_code, done.summary.get("deleted")), (EX_DATAERR, 0),
                done.report())
    line = done.stderr.strip().splitlines()[-1]
    check(f"{name}: the last line says what would go and what allows it",
          f"{gone} of {held} records would be deleted" in line and "--allow-mass-deletion" in line, line)
    held_now, buried, watermark = source.held(), source.buried(), source.watermark()
    check(f"{name}: every record is held, no tombstone", not before[0].keys() - held_now.keys() and buried == before[1])
    check_equal(f"{name}: the watermark is held", watermark, before[2])


def guarded(source, loaded):
    """40 % deleted, then all of them."""
    catalogue, name = source.catalogue, f"{source.name}, {GUARDED_GONE} of {len(loaded)} deleted"
    gone = {record.identifier for record in loaded[:GUARDED_GONE]}
    catalogue.change("DELETE FROM records WHERE identifier < ?", loaded[GUARDED_GONE].identifier)
    # The watermark has something to be held back from.
    catalogue.insert(records.Record("record-new", "2016-01-01T00:00:00Z", "New", "dc"))
    held = len(loaded) + 1
    refused(name, source, GUARDED_GONE, held)
    refused(f"{name}, asked again", source, GUARDED_GONE, held)
    done = source.run("--allow-mass-deletion")
    check_equal(f"{name}, with the user's word", said(done), (0, 0, 0, GUARDED_GONE, True), done.report())
    equal(f"{name}, with the user's word", source, gone)
    check_equal(f"{name}, with the user's word: the watermark moves", source.watermark(), "2016-01-01T00:00:00Z")
    quiet(name, source)

    catalogue.change("CREATE TABLE kept AS SELECT * FROM records")
    catalogue.change("DELETE FROM records")
    refused(f"{source.name}, emptied", source, held - GUARDED_GONE, held - GUARDED_GONE)
    before = expect.rows(source.store)
    catalogue.change("INSERT INTO records SELECT * FROM kept")
    done = source.run()
    check_equal(f"{source.name}, refilled: exit 0, nothing changes", said(done)[:4], (0, 0, 0, 0), done.report())
    check(f"{source.name}, refilled: every row is as it was", expect.rows(source.store) == before)
    equal(f"{source.name}, refilled", source, gone)
    quiet(f"{source.name}, refilled", source)


def killed_within(source, loaded, ever_deleted):
    """kill -9 in the middle of an inventory, then changes, then what the next run makes of it."""
    catalogue, name = source.catalogue, f"{source.name}, killed"
    buried, stamps = source.buried(), catalogue.stamps()
    present = [record for record in loaded if record.identifier in stamps and record.kind == "iso"]
    going, edited, rest = present[:KILLED_CHANGES], present[KILLED_CHANGES:2 * KILLED_CHANGES], present[2 * KILLED_CHANGES:]
    ever_deleted |= {record.identifier for record in going + rest[:1]}
    for number, (gone, other) in enumerate(zip(going, edited)):
        catalogue.delete(gone.identifier)
        catalogue.update_property(other.identifier, TITLE_PROPERTY, f"Killed {number}")
        catalogue.insert(records.Record(f"{source.name}-killed-{number}", None, f"Undated {number}", "dc"))
    before = catalogue.requests_served()
    # The window is one request.
    within = before + 1 + KILL_AFTER_PAGES
    done = killed(lambda: catalogue.requests_served() >= within, catalogue.url, *source.options, "--reconcile", "always",
                  "--delay", DELAY_MS, folder=source.store.parent)
    served = catalogue.requests_served() - before
    check(f"{name} within the inventory, after {served} of {RECORDS // PAGE_SIZE} pages",
          done.exit_code == -9 and "taking an inventory" in done.stderr and served < RECORDS // PAGE_SIZE, done.report())
    check_equal(f"{name}: nothing is buried", source.buried(), buried)
    # In the part that was read two come back that were to go, and one more goes.
    for record in going[:2]:
        catalogue.insert(record)
    catalogue.delete(rest[0].identifier)
    done = source.run("--reconcile", "always")
    check_equal(f"{name}: the next run ends with 0 and compared everything", (done.exit_code, done.summary.get("reconciled")),
                (0, True), done.report())
    note(f"{name}: the next run found {said(done)[1:4]} (new, updated, deleted) in {cost(done)}: "
         + ("it went on with the inventory" if "going on with the inventory" in done.stderr else "it began anew"))
    wrong = source.buried().keys() & catalogue.stamps().keys()
    check(f"{name}: nothing that is there is buried after it", not wrong, wrong)
    done = source.run()
    check_equal(f"{name}: the tick after it ends with 0", done.exit_code, 0, done.report())
    equal(f"{name}, the tick after", source, ever_deleted)
    quiet(name, source)


def changing(folder):
    """Many records, changed while ticks run and while an inventory is killed; each schema a source of one store."""
    loaded = up_to_yesterday(RECORDS)
    with Catalogue(folder / "catalogue", loaded) as catalogue:
        sources = [Source(catalogue, folder / "changing.db", schema, "--schema", schema) for schema in SCHEMAS]
        for source in sources:
            done = source.run()
            check_equal(f"{source.name}, first tick", said(done)[:2], (0, RECORDS), done.report())
            note(f"{source.name}, first tick: {cost(done)}")
        mutator = Mutator(catalogue, loaded)
        under_change(catalogue, sources, mutator)
        # The last second edited has to end first, then the settling time.
        time.sleep(SETTLE_SECONDS + 2)
        for source in sources:
            at_rest(source, mutator.ever_deleted)
        for source in sources:
            killed_within(source, loaded, mutator.ever_deleted)


def still(folder):
    """Few records, and one change at a time; each schema a source of one store."""
    loaded = up_to_yesterday(FEW_RECORDS)
    with Catalogue(folder / "catalogue", loaded) as catalogue:
        sources = [Source(catalogue, folder / "still.db", schema, "--schema", schema) for schema in SCHEMAS]
        one_by_one(catalogue, sources, loaded[7])


def masses(folder, schema):
    """A catalogue that loses much, then all."""
    loaded = list(records.series(FEW_RECORDS, ("dc", "iso"), 60))
    with Catalogue(folder / "catalogue", loaded) as catalogue:
        source = Source(catalogue, folder / "masses.db", schema, "--schema", schema)
        done = source.run()
        check_equal(f"{schema}, first tick", said(done)[:2], (0, FEW_RECORDS), done.report())
        guarded(source, loaded)


def other_version(folder):
    """pycsw 3.0, spoken to as 3.0.0: one identifier at a time, 404 for one that is not there."""
    loaded = up_to_yesterday(FEW_RECORDS)
    with Catalogue30(folder / "catalogue", loaded) as catalogue:
        one_by_one(catalogue, [Source(catalogue, folder / "version.db", "3.0.0", "--csw-version", "3.0.0")], loaded[7])


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    changing(folder / "changing")
    still(folder / "still")
    for schema in SCHEMAS:
        masses(folder / f"masses-{schema}", schema)
    other_version(folder / "3.0")


checks.run(main)
