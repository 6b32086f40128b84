"""Names with a dispersion correction: what they ask for, and what is refused."""

import pytest

from pyscf_ipu import Settings
from pyscf_ipu.suffixes import Dispersion, dispersion_of, without_suffix
from pyscf_ipu.suffixes.names import OWN, SAME_PARAMETERS, SUFFIXES
from pyscf_ipu.suffixes.parameters import METHODS
from pyscf_ipu.xc import FUNCTIONALS, functional


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
    ],
)
def test_a_name_is_a_functional_and_a_correction(name, bare, found):
    assert (without_suffix(name), dispersion_of(name)) == (bare, found)


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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_functional_with_parameters_can_be_asked_for(suffix):
    known = METHODS[SUFFIXES[suffix]].parameters
    for name in FUNCTIONALS:
        if name in OWN or name + suffix in OWN:
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
        ("b3lyp-d2", r"unknown functional 'b3lyp-d2': use one of hf, .* -d3 \(D3 with zero damp"),
        ("m05-d3", "unknown functional 'm05-d3'"),
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
