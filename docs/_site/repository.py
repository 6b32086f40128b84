"""Pages that lie outside docs/, and links between them.

Sphinx reads one folder.  Notebooks and a few pages beside the code are therefore copied into
`docs/repository/` (which git ignores), in the places that they have in the repository, and links
are turned to the copies.  A link to any other file becomes a download of that file.  Where a
command prints a path of the checkout, the page has the path in the repository.
"""

import os
import re
import shutil
from pathlib import Path, PurePosixPath

from docutils import nodes

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
COPIES = "repository"
PAGES = ("*.md", "notebooks/*.ipynb", "notebooks/README.md")
PRINTED = re.compile(rf"{re.escape(str(ROOT))}/([^\n│]*)")  # up to the frame around it
LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(?=[)#])")


def pages():
    """The files to copy, relative to the repository."""
    return sorted({p.relative_to(ROOT) for pattern in PAGES for p in ROOT.glob(pattern)})


def copy(app):
    """Make the copies; only those that have changed, so that a second build is short."""
    for page in pages():
        target = DOCS / COPIES / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != (ROOT / page).read_bytes():
            shutil.copyfile(ROOT / page, target)


def turn_links(app, docname, source):
    """Links to files, from where the page lies in the repository to where it lies here."""
    path = PurePosixPath(docname)
    copied = path.parts[0] == COPIES
    home = ROOT.joinpath(*path.parts[1:]) if copied else DOCS / path
    here = (DOCS / path).parent

    def turned(link):
        target = Path(os.path.normpath(home.parent / link[1]))
        if not target.is_file():
            return link[1]  # Sphinx says so, if it is meant as a link
        inside = target.relative_to(ROOT)
        if inside in copies:
            return os.path.relpath(DOCS / COPIES / inside, here)
        download = target.suffix == ".md" and not target.is_relative_to(DOCS)
        return f"{'path:' * download}{os.path.relpath(target, here)}"

    copies = set(pages())
    source[0] = LINK.sub(turned, source[0])


def shorten_paths(app, doctree):
    """Paths of the checkout in a command's output; what is cut off is made up for by spaces."""
    for block in list(doctree.findall(nodes.literal_block)):
        text = PRINTED.sub(lambda path: path[1].ljust(len(path[0])), block.astext())
        if text != block.astext():
            block.replace_self(nodes.literal_block(text, text, **block.attributes))


def setup(app):
    app.connect("builder-inited", copy)
    app.connect("source-read", turn_links)
    app.connect("doctree-read", shorten_paths, priority=900)  # after the commands have run
    return {"parallel_read_safe": True}
