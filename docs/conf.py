"""Sphinx settings of the documentation site; how to build it: CONTRIBUTING.md.

The pages are also read as plain Markdown on a code host, so nothing in them is of use to Sphinx
alone but lists of pages.  What has to be different on the site is made in `_site/`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["NO_COLOR"], os.environ["COLUMNS"] = "1", "92"  # the commands' --help
# The commands are those of the Python that builds the site.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project = "pyscf_ipu"
html_title = "pyscf_ipu, qm1b, schnet"
author = copyright = "the authors of pyscf_ipu"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.programoutput",
    "mathml",
    "repository",
]
exclude_patterns = ["_site", "_build"]
default_role = "literal"  # `name` in a docstring, as in Markdown
smartquotes_action = "D"  # dashes between an argument and its text; quotes stay as they are
highlight_language = "none"  # a block that names no language is what a program printed

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]  # formulas of a notebook
nb_execution_mode = "off"  # .ci/run executes the notebooks with a limit of time, and commits none

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # the name of a table, not its content
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# Types of other libraries have no pages here, and the build has no network to look theirs up.
nitpick_ignore_regex = [
    (r"py:class", r"(collections|contextlib|jax|jaxlib|jaxtyping|np|npt|numpy|pathlib|pyscf)\..*"),
    (r"py:class", r"Array|Float|Float32|Float64|Forces|PRNGKeyArray|UInt8|ndarray"),
    # Shapes of `numerics/arrays.py`, and what is a number or an array in a result.
    (r"py:class", r"ase\.atoms\.Atoms|ArrayLike|Bool|Count|Flag|Float(A|s)|Int|Mol|Mole|Scalar"),
    (r"py:class", r"DataFrame|(pyscf_ipu\.molecule\.conversions\.)?Made"),
    (r"py:class", r"pyscf_ipu\.results\.result\.(Number|Rows|Text|Truth|Whole)"),
    # What functions of a machine take and users never make.
    (
        r"py:class",
        r"pyscf_ipu\.(numerics\.interaction\.Interaction|xc\.semilocal\.functionals\.Functional)",
    ),
    (r"py:class", r"pyscf_ipu\.(grid\.ao_blocks\.AoBlocks|scf\.algebra\.Algebra)"),
    (r"py:class", r"pyscf_ipu\.(solver\.solver\.Wanted|scf\.lowest\.guess\.Guess)"),
    (r"py:class", r"pyscf_ipu\.kohn_sham\.program\.Spin|Simplest"),
    (r"py:class", r"(pyscf_ipu\.interop\.qcschema_models\.)?(Given|Answer)"),
    (r"py:class", r"(pydantic|qcelemental)\..*"),
    # Parts of results that are read and never made.
    (r"py:class", r"pyscf_ipu\.ipu\..*\.(IpuRow|Lifetime|Moved|Peaks|Pipeline|Pricing|Rate|Tree)"),
    (r"py:class", r"pyscf_ipu\.ipu\.steps\.(streams\.Home|tile_memory\.Held)|ipu\.Target|Platform"),
    (r"py:class", r"pyscf_ipu\.(shapes\.auxiliary\.AuxiliaryTable|scf\.run\.History)"),
    (r"py:class", r"pyscf_ipu\.(fitting\.operators\.Operators|shapes\.tables\.SideGrid)"),
    (r"py:class", r"qm1b\.report\.published_filter\.PublishedFilter"),
    (r"py:class", r"(dict|list|tuple)\[.*"),  # Sphinx cuts a nested type at its first comma
]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"


def show_spelt_out_signatures():
    """Let Sphinx take signatures that list the keys of `**level` as they are.

    It would look for their defaults in the source of the wrapped function, which has fewer.
    """
    import pyscf_ipu  # after the settings of the environment above

    for each in (getattr(pyscf_ipu, name) for name in pyscf_ipu.__all__):
        function = each.__init__ if isinstance(each, type) else each
        if "__signature__" in getattr(function, "__dict__", {}):
            del function.__wrapped__


def setup(app):
    """Keep the colons of fields: napoleon takes "Hartree: the sum" for a type and its text."""
    show_spelt_out_signatures()

    def hide(app, what, name, obj, options, lines):
        if what in ("attribute", "property", "data"):
            lines[:] = [line.replace(":", "\0") for line in lines]

    def show(app, what, name, obj, options, lines):
        lines[:] = [line.replace("\0", ":") for line in lines]

    app.connect("autodoc-process-docstring", hide, priority=100)
    app.connect("autodoc-process-docstring", show, priority=900)
