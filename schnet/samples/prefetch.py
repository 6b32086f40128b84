"""Reading ahead in a thread."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterable[T], depth: int = 2) -> Generator[T, None, None]:
    """Yield the same items, made up to `depth` ahead of their use by one background thread.

    An exception from `items` is raised in the place of its item. Closing this generator, or leaving
    it to the garbage collector, waits for the item in progress, ends the thread and closes `items`.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}; it must be at least 1")
    source = iter(items)
    waiting: deque[Future[list[T]]] = deque()  # lists of one item; an empty one at the end
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        waiting.extend(pool.submit(list, islice(source, 1)) for _ in range(depth))
        while item := waiting.popleft().result():
            waiting.append(pool.submit(list, islice(source, 1)))
            yield item[0]
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(source, Generator):
            source.close()
