"""Docstrings are written for the terminal; what would be lost on a page becomes reStructuredText.

    charge  total charge
    solver  compiled programs to be used,
            also by others

would be one paragraph: arguments and fields in two columns become a definition list.  An indented
block, such as the one above, becomes a literal one.  Everything else is left as it is.
"""

import re

NAME = r"`?[A-Za-z_][\w*]*`?(?: \[[^]]*\])?"  # of an argument or field, perhaps with its shape
NAMES = re.compile(rf"{NAME}(?:, {NAME})*")
SECTION = re.compile(r"(Args|Raises|Returns|Yields):$")  # napoleon's
COLON = "\0"
NO_TEXT = "Alias for field number"  # what Python says of a NamedTuple's fields
ROW = re.compile(rf"({NAMES.pattern}) {{2,}}(?=\S)")


def restructured(lines):
    """The lines, with two-column paragraphs as definition lists and indented ones as literals."""
    out, paragraph, plain = [], [], False
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        indented = bool(paragraph) and all(x.startswith("    ") for x in paragraph)
        if indented and plain:
            out += [".. code-block:: python", ""]
        out += [*(_definitions(paragraph) or paragraph), ""]
        if paragraph and not indented:
            plain = not SECTION.match(paragraph[0])
        elif indented:
            plain = False  # further paragraphs of the same block
        paragraph = []
    return out


def _definitions(paragraph):
    """The definition list that a paragraph is; nothing if it is another kind of text."""
    first = ROW.match(paragraph[0]) if paragraph else None
    if not first:
        return []
    out = []
    for line in paragraph:
        if not line.startswith("    "):
            name, text = _columns(line, first.end())
            if not name:
                return []
            out.append(f"``{name.replace('`', '')}``")
        else:
            text = line.strip()
        out.append(f"    {text}")
    return out


def _columns(line, column):
    """Name and text of a row; a long name may be only one space before the text's column."""
    found = ROW.match(line)
    if found:
        return found[1], line[found.end() :]
    name = line[:column].rstrip()
    if line[column - 1 : column] == " " and NAMES.fullmatch(name):
        return name, line[column:]
    return "", ""


def _on_docstring(app, what, name, obj, options, lines):
    lines[:] = [] if lines[:1] and lines[0].startswith(NO_TEXT) else restructured(lines)
    if what in ("attribute", "property"):  # napoleon would take the words before a colon for a type
        lines[:] = [line.replace(":", COLON) for line in lines]


def _after_napoleon(app, what, name, obj, options, lines):
    lines[:] = [line.replace(COLON, ":") for line in lines]


def _on_signature(app, what, name, obj, options, signature, returns):
    # What dataclasses show for default_factory is no Python, and would not be parsed.
    return signature and signature.replace("<factory>", "..."), returns


def setup(app):
    app.connect("autodoc-process-docstring", _on_docstring, priority=400)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=600)
    app.connect("autodoc-process-signature", _on_signature)
    return {"parallel_read_safe": True}
