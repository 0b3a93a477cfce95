#!/usr/bin/env python3
"""Holds a store against the catalogue's own database: compare.py [--more-in-store] STORE SOURCE CATALOGUE_DATABASE

Each record of pycsw's table `records` must be in the store with the same modified date and title; the stored XML must
parse alone and name the same identifier. With --more-in-store the store may hold records that the catalogue has lost.
Prints a line a difference, at most 20, and ends with 1 when there is one. Reads only.
"""

import pathlib
import sqlite3
import sys
import xml.etree.ElementTree as ElementTree

from records import identifier_of

_SHOWN_MAX = 20


def read(path, statement, *values):
    """All rows of a statement, from a database that must exist and is not changed."""
    connection = sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def extra(store, source, catalogue):
    """Identifiers that the store holds and the catalogue does not."""
    held = {row[0] for row in read(store, "SELECT identifier FROM records WHERE source = ?", source)}
    return held - {row[0] for row in read(catalogue, "SELECT identifier FROM records")}


def differences(store, source, catalogue):
    """A line of text for each record of the catalogue that the store lacks or holds differently."""
    statement = "SELECT identifier, modified, title, xml FROM records WHERE source = ?"
    held = {row[0]: row[1:] for row in read(store, statement, source)}
    found = []
    for identifier, stamp, title in read(catalogue, "SELECT identifier, date_modified, title FROM records"):
        if identifier not in held:
            found.append(f"{identifier}: not in the store; the catalogue has it with {stamp}")
            continue
        held_stamp, held_title, document = held[identifier]
        if held_stamp != stamp:
            found.append(f"{identifier}: modified is {held_stamp!r}, the catalogue says {stamp!r}")
        if held_title != title:
            found.append(f"{identifier}: title is {held_title!r}, the catalogue says {title!r}")
        found.extend(_document_faults(identifier, document))
    return found


def _document_faults(identifier, document):
    try:
        tree = ElementTree.fromstring(document)
    except (ElementTree.ParseError, TypeError) as error:
        return [f"{identifier}: its xml does not parse alone: {error}"]
    named = identifier_of(tree)
    if named != identifier:
        return [f"{identifier}: its xml, a {tree.tag}, names the identifier {named!r}"]
    return []


def stale(store, source, documents):
    """A line of text for each of `documents` (identifier -> element) whose xml in the store is not the same element."""
    held = dict(read(store, "SELECT identifier, xml FROM records WHERE source = ?", source))
    return [
        f"{identifier}: the store has {held.get(identifier)!r:.2000}, the catalogue shows {_written(element):.2000}"
        for identifier, element in documents.items()
        if identifier not in held or _written(ElementTree.fromstring(held[identifier])) != _written(element)
    ]


def _written(element):
    # Prefixes are given anew, in the order of their use, so that the same element is the same text.
    element.tail = None
    return ElementTree.tostring(element, encoding="unicode")


def shown(lines):
    """The first of many lines, and how many there are."""
    more = [f"... {len(lines)} in all"] if len(lines) > _SHOWN_MAX else []
    return "\n".join(lines[:_SHOWN_MAX] + more)


def main(arguments):
    """The command."""
    more_in_store = "--more-in-store" in arguments
    places = [argument for argument in arguments if argument != "--more-in-store"]
    if len(places) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    found = differences(*places)
    if not more_in_store:
        found += [f"{identifier}: in the store, not in the catalogue" for identifier in sorted(extra(*places))]
    if found:
        print(shown(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
