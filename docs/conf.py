"""Sphinx settings of the documentation site; how to build it: CONTRIBUTING.md.

The pages are also read as plain Markdown on a code host, so nothing in them is of use to Sphinx
alone but lists of pages.  What has to be different on the site is made in `_site/`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))
os.environ["NO_COLOR"] = "1"  # the commands' --help
os.environ["JAX_PLATFORMS"] = "cpu"

project = "pyscf_ipu"
html_title = "pyscf_ipu, qm1b, schnet"
author = copyright = "the authors of pyscf_ipu"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "command_help",
    "docstrings",
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
    (r"py:class", r"Array|Float|Float32|PRNGKeyArray|UInt8|ndarray"),
]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
