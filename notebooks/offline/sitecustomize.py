"""Python without a network: `notebooks/run.py` puts this folder first on the path of its kernels.

Python imports a module of this name when it starts, so the processes that a kernel starts are
offline as well, if they are Python's.  Refused, with the error of a machine without a network, are
connections, datagrams and look-ups of names that leave this computer.  A library that opens
sockets in C is not seen (the kernel's own, ZeroMQ, is one), nor is a program in another language.
"""

from __future__ import annotations

import errno
import ipaddress
import sys
from typing import Any

CONNECT = ("socket.connect", "socket.sendto", "socket.sendmsg")
LOOK_UP = ("socket.getaddrinfo", "socket.gethostbyname")


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook (PEP 578).

    Raises:
        OSError: the event would leave this computer.
    """
    if event in CONNECT:
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # else a Unix socket's path
    elif event in LOOK_UP:
        host = arguments[0]
    else:
        return
    if not stays_here(host):
        raise OSError(errno.ENETUNREACH, f"notebooks run without a network: {event} {host}")


def stays_here(host: Any) -> bool:
    """Whether a host is none, a name of this computer, or a loopback address."""
    text = host.decode() if isinstance(host, bytes) else host
    if not isinstance(text, str) or text in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:  # some other name
        return False


sys.addaudithook(refuse)
