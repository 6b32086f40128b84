"""`pyscf-ipu info`."""

from pyscf_ipu.cli import info
from pyscf_ipu.codelets import describe


def test_info_says_what_is_in_use():
    text = info()
    assert describe() in text
    assert "cpu:0" in text
    assert "GiB" in text
