"""What counts as the same output of a page or a notebook (`notebooks/checks/printed.py`)."""

import pytest
from printed import difference


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 1.50 b", "a  1.52  b"),
        ("-153.01… converged 8", "-153.0111581548597 converged 8"),
        ("[ 0.36  0.02 -0.36]", "[0.36102 0.0211 -0.362]".replace("102", "1")),
        ("one\n…\nthree", "one\ntwo\nthree"),
        ("…\nthree\n…", "one\ntwo\nthree\nfour"),
        ("done in 96 s (12.5/s), 0 lost", "done in 8 s (1.1/s), 0 lost"),
        ("9.6 s, 23.5 GiB, 71 rows/s", "1.2 s, 2.5 GiB, 710 rows/s"),
        ("PySCF 2.14.0, line 1", "PySCF 2.9.1, line 1"),
        ("error -4.4e-06", "error 3.9e-05"),
        ("Total 2,614,481 cycles", "Total 2,600,000 cycles"),
        ("C2H6O b3lyp5 1s", "C2H6O b3lyp5 1s"),
        ("20 rows, passed", "PySCF 7/20\nPySCF 17/20\n20 rows, passed"),
        ("code (sources): 2eede52645f1f5ec (this)", "code (sources): 3de26ba8af50f2e4 (this)"),
    ],
)
def test_the_same(shown, printed):
    assert difference(shown, printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 1.50 b", "a 1.53 b"),
        ("a 1.50 b", "a 1.50 c"),
        ("-153.01… converged 8", "-153.05 converged 8"),
        ("converged 8", "converged 9"),
        ("one\n…\nfour", "one\ntwo\nthree"),
        ("one", "one\ntwo"),
        ("one\ntwo", "one"),
        ("done in 96 s, 0 lost", "done in 96 s, 1 lost"),
        ("error -4.4e-06", "error 5e-04"),
        ("Total 2,614,481 cycles", "Total 1,521,185 cycles"),
        ("C2H6O", "C3H6O"),
    ],
)
def test_not_the_same(shown, printed):
    assert difference(shown, printed)


def test_errors_are_compared_by_their_size():
    errors = "energy_mev  0.284  0.103  0.63\ntest MAE 753.23 meV over 100 rows"
    near = "energy_mev  0.2  -0.3  0.9\ntest MAE 690.1 meV over 100 rows"
    assert difference(errors, near) == ""
    assert difference("charge_e  1.7e-05  0.000158", "charge_e  1.1e-05  0.000123") == ""
    assert difference(errors, near.replace("0.2 ", "0.061 "))
    assert difference(errors, near.replace("0.9", "1.95"))
    assert difference(errors, near.replace("100", "99"))


def test_a_loose_comparison():
    assert difference("worker 1 compiles\n1.00 eV", "1.03 eV", loose=True) == ""
    assert difference("1.00 eV", "1.06 eV", loose=True)
