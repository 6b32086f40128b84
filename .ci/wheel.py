"""What a wheel must do in an empty environment: load the native codelets and compute one energy."""

from pyscf import dft, gto

import pyscf_ipu as pi
from pyscf_ipu.codelets import describe, library

GEOMETRY = "O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469"

print(describe())
assert library(), describe()

mole = gto.M(atom=GEOMETRY, basis="sto-3g", verbose=0)
reference = dft.RKS(mole, xc="b3lyp")
reference.grids.level = 0
reference.conv_tol = 1e-11
expected = reference.kernel()
found = pi.rks(pi.Molecule.from_pyscf(mole), grid_level=0, precision="float64")
print(f"{found.energy:.10f} Hartree, PySCF {expected:.10f}")
assert abs(found.energy - expected) < 1e-8
