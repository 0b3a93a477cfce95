"""pycsw 2.6.2 and 3.0, each spoken to as CSW 2.0.2 and 3.0.0, by POST and by GET.

300 records come, a second tick is quiet, one insert and one update by CSW-T arrive, and then it is quiet again. What was
spoken is read from the catalogue's own log of requests.
"""

import os
import pathlib

import checks
import expect
import records
from catalogue import Catalogue
from catalogue30 import Catalogue30
from checks import check
from harvester import tick

RECORDS = 300
PAGE_SIZE = 50
UPDATED_STAMP = "2016-01-02T00:00:00Z"
INSERTED_STAMP = "2016-01-01T00:00:00Z"


def harvested(catalogue, run):
    """Ticks and counts what the catalogue served meanwhile."""
    before = catalogue.requests_served()
    done = run()
    return done, catalogue.requests_served() - before


def speak(name, catalogue, run, store, source):
    """The whole of it in one version and by one method, in a source of its own."""
    newest = max(catalogue.stamps().values())
    done, _ = harvested(catalogue, run)
    expect.complete(f"{name}, first tick", done, RECORDS, 0, newest)
    if not check(f"{name}, first tick: there is a store", store.exists(), done.report()):
        return
    expect.same(f"{name}, first tick", store, source, catalogue)
    before = expect.rows(store)
    done, served = harvested(catalogue, run)
    expect.quiet(f"{name}, second tick", done, newest, served)
    check(f"{name}, second tick: no row was touched", expect.rows(store) == before)


def change(catalogue):
    """One record comes and one becomes another, with stamps newer than all others and long past."""
    catalogue.insert(records.Record("record-inserted", INSERTED_STAMP, "Inserted", "dc"))
    catalogue.update(records.Record("record-0000001", UPDATED_STAMP, "Updated", "iso"))


def speak_after_change(name, catalogue, run, store, source):
    """The two come, and nothing after them."""
    done, _ = harvested(catalogue, run)
    expect.complete(f"{name}, after an insert and an update", done, 1, 1, UPDATED_STAMP)
    if store.exists():
        expect.same(f"{name}, after an insert and an update", store, source, catalogue)
    done, served = harvested(catalogue, run)
    expect.quiet(f"{name}, third quiet tick", done, UPDATED_STAMP, served)


def all_ways(folder, server, kind):
    """One catalogue, one store, a source for each version and method."""
    store = folder / "versions.db"
    with kind(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        def way(version, method):
            source = f"{version} by {method}"
            return f"{server}, CSW {source}", source, lambda: tick(
                catalogue.url, "--db", store, "--source", source, "--csw-version", version, "--method", method,
                "--page-size", PAGE_SIZE, folder=folder)

        ways = [way(version, method) for version in ("2.0.2", "3.0.0") for method in ("post", "get")]
        for name, source, run in ways:
            before = catalogue.methods()
            speak(name, catalogue, run, store, source)
            spoken = {method: count - before.get(method, 0) for method, count in catalogue.methods().items()}
            # Capabilities are asked for by GET in any case.
            by_post = source.endswith("post")
            most, least = ("POST", "GET") if by_post else ("GET", "POST")
            check(f"{name}: GetRecords went by {most} ({spoken})",
                  spoken.get(most, 0) >= RECORDS // PAGE_SIZE and spoken.get(least, 0) <= (1 if by_post else 0))
        change(catalogue)
        for name, source, run in ways:
            speak_after_change(name, catalogue, run, store, source)


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    all_ways(folder / "2.6", "pycsw 2.6.2", Catalogue)
    all_ways(folder / "3.0", "pycsw 3.0", Catalogue30)


checks.run(main)
