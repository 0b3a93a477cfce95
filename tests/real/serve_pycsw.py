"""Serves pycsw on a socket handed over by the parent: serve_pycsw.py FD CONFIG REQUESTS_LOG

Runs in the virtual environment that has pycsw and waitress. The parent binds the socket, so the port is known before
and cannot be lost to another process. Each request leaves one line in REQUESTS_LOG, written before its answer goes out:
what a client claims to have asked can be held against it.
"""

import os
import socket
import sys

import waitress


def counted(application, log):
    """The same application, with a line of text in `log` for each request."""

    def serve(environ, start_response):
        def start(status, headers, exc_info=None):
            log.write(f"{environ['REQUEST_METHOD']} {status}\n")
            return start_response(status, headers, exc_info)

        return application(environ, start)

    return serve


def main():
    descriptor, config, requests_log = sys.argv[1:]
    os.environ["PYCSW_CONFIG"] = config
    # pycsw reads its configuration from the environment, so it is imported only now.
    from pycsw.wsgi import application

    with open(requests_log, "a", buffering=1, encoding="utf-8") as log:
        waitress.serve(
            counted(application, log),
            sockets=[socket.socket(fileno=int(descriptor))],
            threads=4,
        )


main()
