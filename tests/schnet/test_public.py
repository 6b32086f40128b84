"""The names that users import, and what importing them costs."""

import subprocess
import sys

import schnet


def test_every_public_name_is_there():
    assert all(getattr(schnet, name) is not None for name in schnet.__all__)
    assert set(schnet.__all__) <= {*dir(schnet)}


def test_without_the_extra_the_command_says_what_to_install():
    code = (
        "import sys; sys.modules['yaml'] = None; from schnet.cli import main; "
        "sys.exit(main(['--help']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert found.stderr.startswith("schnet: the package yaml is missing: run pip install ")
    assert '"pyyaml>=6"' in found.stderr
    assert found.stderr.count("\n") == 1


def test_importing_the_package_imports_nothing_heavy():
    code = "import schnet, schnet.cli, sys; print({'jax', 'ase', 'pyarrow'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
