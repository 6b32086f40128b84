"""Names with a dispersion correction: what they ask for, and what is refused."""

import pytest
from pyscf.dft import libxc

from pyscf_ipu import Settings
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.xc.registry import _ALL, functional
from pyscf_ipu.xc.suffixes.names import (
    ALIASES,
    FUNCTIONALS,
    OWN,
    SAME_PARAMETERS,
    SUFFIXES,
    WITH_VV10,
    Dispersion,
    dispersion_of,
    mistake,
    one_spelling,
    without_suffix,
)
from pyscf_ipu.xc.suffixes.parameters import METHODS


@pytest.mark.parametrize(
    ("name", "bare", "found"),
    [
        ("b3lyp", "b3lyp", None),
        ("B3LYP-D3BJ", "b3lyp", Dispersion("d3bj", "b3lyp")),
        ("b3lyp5-d3bj", "b3lyp5", Dispersion("d3bj", "b3lyp")),
        ("pbe-d3", "pbe", Dispersion("d3zero", "pbe")),
        ("pbe0-d4", "pbe0", Dispersion("d4", "pbe0")),
        ("hf-d3bj", "hf", Dispersion("d3bj", "hf")),
        ("cam-b3lyp", "cam-b3lyp", None),
        ("wb97x-d", "wb97x-d", Dispersion("chai_head_gordon", "wb97x-d")),
        ("wb97x-d3", "wb97x-d3", Dispersion("d3zero", "wb97x-d3")),
        ("wb97X-D3BJ", "wb97x-d3bj", Dispersion("d3bj", "wb97x-d3bj")),
        ("wb97m-d3bj", "wb97m-d3bj", Dispersion("d3bj", "wb97m-d3bj")),
        ("B97-3c", "b97-3c", Dispersion("d3bj", "b97-3c")),
        ("R2SCAN3C", "r2scan-3c", Dispersion("d4", "r2scan-3c")),
    ],
)
def test_a_name_is_a_functional_and_a_correction(name, bare, found):
    assert (without_suffix(name), dispersion_of(name)) == (bare, found)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("B3LYP-D3(BJ)", "b3lyp-d3bj"),
        ("b3lyp_d3bj", "b3lyp-d3bj"),
        ("B3LYP+D3", "b3lyp-d3"),
        ("b3lyp-d3(0)", "b3lyp-d3"),
        ("PBE0-D3zero", "pbe0-d3"),
        ("B3LYPG-D4", "b3lyp-d4"),
        ("wB97X-D3(BJ)", "wb97x-d3bj"),
        ("ωB97X-D", "wb97x-d"),
        ("wb97x_d", "wb97x-d"),
        ("wB97XD", "wb97x-d"),
        ("wb97x-d3(0)", "wb97x-d3"),
        ("wB97M-D3(BJ)", "wb97m-d3bj"),
        ("M062X", "m06-2x"),
        ("M06-2X-D3", "m06-2x-d3"),
        ("CAM-B3LYP-D3(BJ)", "cam-b3lyp-d3bj"),
        ("camb3lyp", "cam-b3lyp"),
        ("PBE1PBE", "pbe0"),
        ("pbepbe-d3", "pbe-d3"),
        ("Hartree-Fock", "hf"),
        ("r2SCAN-D4", "r2scan-d4"),
        ("r²SCAN-3c", "r2scan-3c"),
        ("b973c", "b97-3c"),
    ],
)
def test_names_as_people_write_them(name, meant):
    assert Settings(xc=name) == Settings(xc=meant)
    assert functional(name) == functional(meant)
    assert one_spelling(meant) == meant


IN_PYSCF = ["b3lypg", "b3lyp5", "pbe,pbe", "pbe1pbe", "pbeh", "lda,vwn", "slater,vwn5", "b88,lyp"]
IN_PYSCF += ["b88,p86", "tpss,tpss", "camb3lyp", "m062x", "wb97x_d", "wb97xd", "hse06", "r2scan"]


@pytest.mark.parametrize("name", IN_PYSCF)
def test_a_name_that_pyscf_knows_is_the_same_functional(name):
    """By libxc's numbers and weights: b3lyp and b3lyp5 differ in their local correlation alone."""
    (asked, parts), (ours, our_parts) = map(
        libxc.parse_xc, (name, functional(one_spelling(name)).pyscf_name)
    )
    assert (asked, sorted(parts)) == (ours, sorted(our_parts))


def test_the_names_of_all_functionals():
    assert tuple(entry.name for entry in _ALL) == FUNCTIONALS
    assert {one_spelling(name) for name in ALIASES} <= set(FUNCTIONALS)
    assert not any(map(mistake, (*FUNCTIONALS, *ALIASES)))


def test_names_that_mean_two_things_are_refused():
    with pytest.raises(UsageError, match=r"unknown functional 'SVWN' \(did you mean 'svwn5'\?\)"):
        Settings(xc="SVWN")  # VWN5 in PySCF, VWN3 in Gaussian


def test_the_functional_is_the_same_but_for_its_dispersion():
    plain, corrected = functional("b3lyp"), functional("B3LYP-d3bj")
    assert plain.dispersion is None
    assert corrected.dispersion == Dispersion("d3bj", "b3lyp")
    assert hash(corrected) != hash(plain)
    assert (corrected.name, corrected.pyscf_name) == ("b3lyp-d3bj", "b3lyp")
    assert (corrected.terms, corrected.exact_exchange) == (plain.terms, plain.exact_exchange)


def test_the_definition_has_program_and_parameters():
    definition = functional("pbe0-d4").definition
    assert definition.startswith(functional("pbe0").definition)
    assert "; dispersion: D4 by dftd4, parameters of pbe0 (doi:10.1063/1.5090222): " in definition
    assert "s8 1.20065498, s9 1, a1 0.40085597, a2 5.02928789" in definition
    assert "counterpoise" not in definition


def test_the_definition_of_a_composite_method_has_both_corrections():
    text = functional("r2scan-3c").definition
    assert text.count("r2scan-3c") == 2
    assert "D4 by dftd4, parameters of r2scan-3c (doi:10.1063/5.0040021): s6 1, s8 0, s9 2" in text
    assert "ga 2, gc 1, wf 6; counterpoise by dftd3, parameters of r2scan-3c" in text
    assert text.endswith("eta_spec 1.15, alpha 0.941, beta 1.4636, dmp_scal 4, dmp_exp 6")
    assert functional("r2scan-3c").dispersion.packages == ("dftd4", "dftd3")
    assert functional("b97-3c").dispersion.packages == ("dftd3",)
    assert functional("b97-3c").definition.endswith("rscal 10, qscal 0.08")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_functional_with_parameters_can_be_asked_for(suffix):
    known = METHODS[SUFFIXES[suffix]].parameters
    for name in FUNCTIONALS:
        if name in OWN or name + suffix in OWN or name in WITH_VV10:
            continue
        if SAME_PARAMETERS.get(name, name) in known:
            assert functional(name + suffix).dispersion is not None
        else:
            with pytest.raises(ValueError, match=f"parameters of '{name}', only of .*b3lyp5"):
                functional(name + suffix)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lda-d3bj", r"'lda-d3bj': there are no D3\(BJ\) parameters of 'lda', only of b3lyp, b3ly"),
        (
            "b3lyp-d2",
            r"'b3lyp-d2' \(did you mean 'b3lyp'\?\): use one of hf, .* -d3 \(D3 with zero",
        ),
        ("m05-d3", "unknown functional 'm05-d3'"),
        ("r2SCAN-3c-D4", "'r2scan-3c-d4': 'r2scan-3c' has its own correction; leave out -d4"),
        ("wB97M-V-D3BJ", "'wb97m-v-d3bj': 'wb97m-v' has its own correction; leave out -d3bj"),
        ("PBEh-3c", "'PBEh-3c' is not offered: the composite methods here are 'b97-3c' and"),
    ],
)
def test_what_is_not_there_names_what_is(name, words):
    for refuse in (functional, lambda text: Settings(xc=text).check()):
        with pytest.raises(ValueError, match=words):
            refuse(name)


def test_a_correction_in_the_name_is_not_corrected_again():
    with pytest.raises(ValueError, match="no D4 parameters of 'wb97x-d3bj'"):
        dispersion_of("wb97x-d3bj-d4")


def test_levels_that_differ_in_dispersion_have_one_program():
    level = Settings(xc="B3LYP-D4", grid_level=1)
    assert level.without_dispersion() == Settings(xc="b3lyp", grid_level=1)
    assert level.dispersion == Dispersion("d4", "b3lyp")
    assert Settings(xc="PBE").without_dispersion() == Settings(xc="PBE")
    assert Settings().dispersion is None
