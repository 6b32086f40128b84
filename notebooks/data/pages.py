"""Pictures of the profile page for the notebook simulated-IPU: `python notebooks/data/pages.py`.

Needs chromium on the path.  Each picture is the top of the page that the notebook's own program
gives, or its memory section, as a browser of 1,000 pixels draws it.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from PIL import Image

from pyscf_ipu.ipu import BOW, simulate, target
from pyscf_ipu.ipu.report.profile import Profile
from pyscf_ipu.tiles import tile_map, tile_put_replicated, tile_put_sharded

DATA = Path(__file__).parent
WIDTH, COLOURS = 1000, 64
CLOCK_MS = 3000  # of the page's time, for its drawings


def vertex() -> Profile:
    """Seven vertices on one tile, and one on each of six."""
    rows = np.ones((13, 512), np.float32)
    tiles = (1,) * 7 + tuple(range(2, 8))

    def fn(x: jax.Array) -> jax.Array:
        placed = tile_put_sharded(x, tiles)
        return tile_map(lambda row: jnp.exp(-row * row), placed, name="damp").array

    return simulate(fn, BOW)(rows)[1]


def product() -> Profile:
    """J = E v by vertices that keep their rows of E."""
    e, v = np.ones((8 * 1471, 1024), np.float32), np.ones(1024, np.float32)

    def fn(e: jax.Array, v: jax.Array) -> jax.Array:
        placed = tile_put_sharded(e.reshape(1471, 8, -1), tuple(range(1, 1472)))
        everywhere = tile_put_replicated(v, placed.tiles)
        return tile_map(lambda a, x: a @ x, placed, everywhere, name="e_v", shared=True).array

    return simulate(fn, BOW, resident=(0,))(e, v)[1]


def replicas() -> Profile:
    """One layer and its gradient on sixteen IPUs."""

    def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
        gradient = lax.psum(x.T @ jnp.tanh(x @ weights), "replica")
        return weights - 1e-3 * gradient

    mesh = Mesh(np.array(jax.devices()[:1]), ("replica",))
    stay, split = PartitionSpec(), PartitionSpec("replica")
    step = jax.shard_map(layer, mesh=mesh, in_specs=(stay, split), out_specs=stay, check_vma=False)
    weights, x = np.ones((1024, 1024), np.float32), np.ones((512, 1024), np.float32)
    system = target("bow-pod16")
    return simulate(step, system, replicas=16, resident=(0,), overlap=True)(weights, x)[1]


PICTURES = {
    "vertex": (vertex, 0, 900),
    "product": (product, 0, 900),
    "replicas": (replicas, 0, 1420),
}
"""The program, and from where to where its page is shown, in pixels."""


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium or google-chrome on the path: install one", file=sys.stderr)
        return 1
    for name, (program, top, bottom) in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            page, picture = Path(folder, "page.html"), Path(folder, "page.png")
            program().to_html(page)
            subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 f"--virtual-time-budget={CLOCK_MS}", f"--window-size={WIDTH},{bottom}",
                 f"--user-data-dir={folder}/browser", f"--screenshot={picture}", page.as_uri()],
                check=True, capture_output=True,
            )  # fmt: skip
            with Image.open(picture) as image:
                seen = image.crop((0, top, WIDTH, bottom)).quantize(COLOURS)
                seen.save(DATA / f"page-{name}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
