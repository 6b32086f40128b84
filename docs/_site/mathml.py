"""Formulas as MathML by docutils: Sphinx's own way would load a script from the network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(self, node):
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode  # its source


def block(self, node):
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
