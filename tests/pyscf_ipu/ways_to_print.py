"""A script whose forks print in every way that commands do; writes their exit codes to a file.

python ways_to_print.py CODES.json {result,log}
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.live import Live

from pyscf_ipu.base.command_line.targets import TO_STDOUT, put_json
from pyscf_ipu.base.terminal import exit_code, say
from qm1b.process.display import Bar, Plain

WORK = 7
"""The exit code of the work."""


def live():
    with Live("a table", console=Console(), auto_refresh=False) as shown:
        shown.refresh()


def bar():
    with Bar(Console()) as display:
        display.say("an event above the bar")


WAYS = {
    "print": lambda: print("a line"),
    "say": lambda: say("a line"),
    "writelines": lambda: sys.stdout.writelines(["a,b\n"] * 9000),
    "rich": lambda: Console().print("a line"),
    "live": live,
    "bar": bar,
    "plain": lambda: Plain().say("a line"),
    "json": lambda: put_json("{}", TO_STDOUT),
}


class Command:
    def __init__(self, way, is_log, done):
        self.way, self.stdout_is_log, self.done = way, is_log, done

    def __call__(self):
        WAYS[self.way]()
        say(f"{self.way}: a second line")
        self.done.touch()
        return WORK


def main(codes, kind):
    found = {}
    for way in WAYS:
        done = codes.with_name(f"{way}.done")
        if (child := os.fork()) == 0:
            code = exit_code(way, partial(Command, way, kind == "log", done))
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found[way] = [code, done.exists()]
    codes.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
