"""Text of others in Markdown: shown as it is, and never read as markup.

A card shows names of files, texts of rows and what `verify.json` says; a page that renders it must
not run any of that. What the author of the card states may have Markdown, but no HTML.
"""

import json
import re

from pyscf_ipu.base.terminal import visible

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;"}
_PLAIN_CODE = re.compile(r"[\w .,:;()+*/=@#%-]+")

_MARKUP = re.compile(r"[\\\[\]~$]|\*(?=.)|(?<!\w)_|_(?!\w)|^[-+=#]")
"""What begins markup within a line; underscores inside of words and an asterisk at the end do not.
"""


def without_html(text: str) -> str:
    """A statement in one line: its Markdown is kept, its HTML is shown."""
    line = visible(" ".join(text.split()))
    return "".join(_ENTITIES[c] if c in "&<>" else c for c in line)


def literal(text: object) -> str:
    """Any text in one line of Markdown, as it is."""
    line = visible(str(text), keep="")
    marked = _MARKUP.sub(lambda sign: f"\\{sign[0]}", line)
    return "".join(_ENTITIES.get(c, c) for c in marked)


def code(text: object) -> str:
    """A name as code, if it is one; else as `literal`."""
    return f"`{text}`" if _PLAIN_CODE.fullmatch(str(text)) else literal(text)


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that stays in its block of code and is no HTML; YAML reads it too."""
    text = json.dumps(value, indent=indent)
    for character in "<>&`":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
