"""The directive `command-help`: what a command prints for --help, asked when the site is built.

.. command-help:: qm1b generate
"""

import io
import shlex
import sys
import tomllib
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import Directive

COLUMNS = "92"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def help_of(command):
    """The text of `command --help`; raises RuntimeError if the command has none."""
    name, *rest = shlex.split(command)
    home, function = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"][name].split(":")
    module = import_module(home)
    main, out = getattr(module, function), io.StringIO()
    arguments = patch.object(sys, "argv", [name, *rest, "--help"])
    with arguments, patch.dict("os.environ", COLUMNS=COLUMNS), redirect_stdout(out):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{command} --help ended with {end.code}") from end
    checkout = Path(str(module.__file__)).parents[1]
    return out.getvalue().replace(f"{checkout}/", "")


class CommandHelp(Directive):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        text = help_of(self.arguments[0]).rstrip()
        if not text:
            raise self.error(f"{self.arguments[0]} --help prints nothing")
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
