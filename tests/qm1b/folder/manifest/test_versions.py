"""What a manifest says of the software."""

import hashlib
from importlib import metadata

from qm1b.folder.manifest import versions as versions_module
from qm1b.folder.manifest.versions import constraints, versions


def test_constraints_are_named_by_their_hash_and_compared(tmp_path):
    path = tmp_path / "constraints.txt"
    here = metadata.version("numpy")
    text = (
        f"# a comment\nnumpy=={here}\nnot-installed-anywhere==1.0\n"
        "jax==0.0.1 ; python_full_version < '3'\n"
    )
    path.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert constraints(path) == f"sha256 {digest}, all kept"
    path.write_text(text + "pyscf==0.0.1\n")
    assert constraints(path).endswith(", not kept for 1")


def test_every_version_is_text(monkeypatch, tmp_path):
    found = versions()
    assert all(isinstance(value, str) for value in found.values())
    assert found["constraints"].startswith("sha256 ")  # the tests run in a checkout
    monkeypatch.setattr(versions_module, "CONSTRAINTS", tmp_path / "none")
    assert "constraints" not in versions()
