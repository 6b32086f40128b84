"""What Ray prints of itself, in colours and over many lines, as plain sentences."""

import re
import threading
from collections import Counter, deque
from typing import Protocol, runtime_checkable

from pyscf_ipu.base.terminal import counted

MOST_CHARACTERS = 200

_THREAD = "ray_listen_error_messages"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LOST = re.compile(r"Task \S+ failed.*\bnode\b.*Node IP: ([\w.:]*\w)", re.DOTALL)
_DEAD = re.compile(r"The node with node id.* address: ([\w.:]*\w)")
_OF_DEAD_NODES = "Raylet is terminated"


@runtime_checkable
class Writable(Protocol):
    """A stream of text, such as `sys.stdout`."""

    def write(self, text: str, /) -> int:
        """Write."""
        ...

    def flush(self) -> None:
        """Hand over what was written."""
        ...


class RayMessages:
    """A standard output that keeps back what Ray's thread writes.

    Args:
        stream: takes everything else.
    """

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._messages = deque[str]()

    def take(self) -> list[str]:
        """A sentence for each thing that Ray has said since the last call."""
        messages = [self._messages.popleft() for _ in range(len(self._messages))]
        lost = Counter(hit[1] for message in messages if (hit := _LOST.search(message)))
        sentences = [
            f"node {node} was lost with {counted(tasks, 'work unit')} in progress, which Ray "
            "computes again elsewhere"
            for node, tasks in lost.items()
        ]
        for message in messages:
            if dead := _DEAD.search(message):
                sentences.append(f"node {dead[1]} is dead; Ray computes its units elsewhere")
            elif message and not _LOST.search(message) and not message.startswith(_OF_DEAD_NODES):
                sentences.append(f"Ray: {message.splitlines()[0][:MOST_CHARACTERS]}")
        return sentences

    def write(self, text: str) -> int:
        """Write, or keep back."""
        if threading.current_thread().name != _THREAD:
            return self._stream.write(text)
        self._messages.append(_COLOURS.sub("", text).removeprefix("(raylet)").strip())
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
