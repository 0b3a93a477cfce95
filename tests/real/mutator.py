"""Changes a catalogue by CSW-T while it is harvested, in all the ways that a filter on stamps shows, and in those that it cannot.

Knows what it deleted and what is there. Left to the steps: what the harvester should make of it.
"""

import collections
import dataclasses
import random
import threading
import time

import records
from catalogue import now

CHANGES_A_SECOND = 3
CHANGES_MIN = 100
CHANGING_SECONDS_MAX = 150

# pycsw 2.6.2 finds a property in a document by the names of this profile alone, so that only iso records are changed by property.
TITLE_PROPERTY = "apiso:Title"


class Mutator(threading.Thread):
    """Makes CHANGES_MIN changes by CSW-T and goes on until `enough` is set; `done` counts them by kind.

    `ever_deleted` gets an identifier before its record goes, `live` loses it then: what stands in neither was there throughout.
    """

    def __init__(self, catalogue, loaded):
        super().__init__(daemon=True)
        self.catalogue = catalogue
        self.enough = threading.Event()
        self.done = collections.Counter()
        self.ever_deleted = set()
        self.live = {record.identifier: record for record in loaded}
        self.error = None
        self._gone = {}
        self._random = random.Random(20160101)

    def run(self):
        start = time.monotonic()
        try:
            for number in range(CHANGING_SECONDS_MAX * CHANGES_A_SECOND):
                late = time.monotonic() - start > CHANGING_SECONDS_MAX
                if late or (number >= CHANGES_MIN and self.enough.is_set()):
                    return
                time.sleep(max(0.0, start + number / CHANGES_A_SECOND - time.monotonic()))
                change = self._random.choice(self.CHANGES)
                change(self, number)
                self.done[change.__name__.removeprefix("_make_")] += 1
        except Exception as error:
            self.error = error

    def _any(self, kinds=("dc", "iso")):
        return self._random.choice([record for record in self.live.values() if record.kind in kinds])

    def _add(self, record):
        self.catalogue.insert(record)
        self.live[record.identifier] = record

    def _make_delete(self, number):
        record = self._any()
        self.ever_deleted.add(record.identifier)
        del self.live[record.identifier]
        self.catalogue.delete(record.identifier)
        self._gone[record.identifier] = record

    def _make_insert_backdated(self, number):
        self._add(records.Record(f"old-{number:05}", ten_years_ago(), f"Back-dated {number}", ("dc", "iso")[number % 2]))

    def _make_insert_undated(self, number):
        self._add(records.Record(f"undated-{number:05}", None, f"Undated {number}", ("dc", "iso")[number % 2]))

    def _make_insert(self, number):
        self._add(records.Record(f"new-{number:05}", now(), f"New {number} \u2013 s\u00e9rie <A&B>", ("dc", "iso")[number % 2]))

    def _make_insert_again(self, number):
        if not self._gone:
            self._make_delete(number)
        record = self._gone.pop(self._random.choice(sorted(self._gone)))
        # With the stamp that it had, or with a new one.
        self._add(record if number % 2 else dataclasses.replace(record, stamp=now()))

    def _make_edit(self, number):
        record = dataclasses.replace(self._any(), stamp=now(), title=f"Edited {number} <A&B>")
        self.catalogue.update(record)
        self.live[record.identifier] = record

    def _make_edit_property(self, number):
        record = self._any(("iso",))
        title = f"Property {number} \u2013 s\u00e9rie <A&B>"
        self.catalogue.update_property(record.identifier, TITLE_PROPERTY, title)
        self.live[record.identifier] = dataclasses.replace(record, title=title)

    CHANGES = (_make_delete, _make_delete, _make_delete, _make_insert_backdated, _make_insert_undated, _make_insert,
               _make_insert_again, _make_edit, _make_edit_property, _make_edit_property)


def ten_years_ago():
    """The beginning of a day, as catalogues write it."""
    return f"{int(now()[:4]) - 10}{now()[4:10]}T00:00:00Z"
