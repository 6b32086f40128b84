"""A library must leave JAX as it found it."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

PROBE = """
import json, sys
import pyscf_ipu
import pyscf_ipu.commands.cli
import pyscf_ipu.nanodft.command
loaded = "jax" in sys.modules
import jax
import jax.numpy as jnp
before = {k: repr(v) for k, v in jax.config.values.items()}
from pyscf_ipu import Molecule, rks
mol = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])
level = {"xc": "hf", "grid_level": 0}
energies = [float(rks(mol, precision=p, **level).energy) for p in ("float64", "float32")]
after = {k: repr(v) for k, v in jax.config.values.items()}
changed = sorted(k for k in before if before[k] != after[k])
print(json.dumps({
    "loaded": loaded, "changed": changed, "energies": energies,
    "dtypes": [str(jnp.ones(1).dtype), str(jnp.arange(1).dtype)],
}))
"""


@pytest.mark.slow
def test_importing_and_running_in_float64_changes_no_setting():
    run = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["loaded"] is False, "JAX is imported only when it is needed"
    assert report["changed"] == []
    assert report["dtypes"] == ["float32", "int32"]
    assert abs(report["energies"][0] - report["energies"][1]) < 1e-4


@pytest.mark.parametrize("name", ["pyscf_ipu", "pyscf_ipu.nanodft"])
def test_public_names(name):
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public).__name__ == public
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'roks'"):
        _ = package.roks


STRUCK = """
import signal, sys
import pyscf_ipu as pi

class Strike:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

helium = pi.Molecule([2], [[0, 0, 0]])
assert "jax" not in sys.modules
sys.meta_path.insert(0, Strike())
try:
    pi.rks
except KeyboardInterrupt:
    print("interrupted")
print(float(pi.rks(helium, xc="hf").energy))
"""


@pytest.mark.parametrize(
    "module", [pytest.param("jax._src.tree_util", marks=pytest.mark.long), "jax.numpy"]
)
def test_ctrl_c_waits_for_the_end_of_an_import(module):
    """JAX cannot be imported again after half an import."""
    run = subprocess.run(
        [sys.executable, "-c", STRUCK, module], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.startswith("interrupted\n-2.8"), run.stdout + run.stderr
