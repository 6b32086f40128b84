"""The flags of the original PySCF-IPU, in the spelling of this package.

Its two programs are nanoDFT (`--mol_str benzene --its 20`) and density_functional_theory.py
(`-methane -backend cpu -float32`). What has the same meaning is translated. What is done in another
way ends in a sentence with the new form, and what has no meaning here in one that says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

NEW_FORM: Mapping[str, str] = MappingProxyType(
    {
        "mol_str": "MOLECULE",
        "str": "MOLECULE",
        "its": "--max-cycles",
        "level": "--grid-level",
    }
)
"""Flags with a value: the option that takes it; MOLECULE is the argument without a name."""

SWITCHES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "methane": ("methane",),
        "H": ("hydrogen",),
        "pyscf": ("--compare",),
        "float32": ("--precision", "float32"),
        "enable64": ("--precision", "float64"),
    }
)
"""Flags that are on or off, and what stands for them where they are on."""

WITHOUT_EFFECT = ("verbose", "v", "benchmark", "jit", "skippyscf", "diis", "spin", "threads")
WITHOUT_EFFECT += ("threads_int", "multv", "intv", "batches", "ndevices", "plevel", "debug")
"""Flags that are left out in silence: they change no number, or name what is always done."""

GENERATE = "qm1b generate FILE --preset qm1b --conformers 1000 --out DIR makes a dataset"
PROFILE = "pyscf-ipu rks MOLECULE --ipu bow prices the run on a simulated IPU"
ALWAYS = "the integrals are always the package's own, and there is nothing to choose"
SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "gdb": "qm1b select and qm1b generate read GDB's archives: " + GENERATE,
        **dict.fromkeys(("generate", "save", "fname", "gname", "num_conformers"), GENERATE),
        "resume": "the same qm1b generate command again resumes a run",
        "limit": "qm1b generate FILE --limit N reads the first N lines",
        "split": "qm1b generate FILE --shard i/n --out DIR computes a part; qm1b merge joins them",
        "randomSeed": "pyscf-ipu rks SMILES --seed N, or qm1b generate --seed N",
        "rattled_std": "qm1b generate FILE --rattle-angstrom X displaces every atom",
        "uniform_pyscf": "qm1b generate FILE --audit 0.001 recomputes a share of rows with PySCF",
        "nohs": "hydrogens are always added: a molecule without them has no closed shell",
        "structure_optimization": "pyscf-ipu optimize MOLECULE",
        "molecule_name": "results take the molecule's name",
        "profile": PROFILE,
        "vis_num_error": "nanodft MOLECULE --compare prints the error of every cycle",
        "numerror": "nanodft MOLECULE --compare prints the error of every cycle",
        "checkc": "nanodft MOLECULE --compare prints the error of every cycle",
        "C": "give c_N, a row of N carbons, as the molecule",
        "he": "give a geometry: 'He 0 0 0'",
        "density_mixing": "damping is tried by itself where an SCF does not converge",
        "skipdiis": "pi.Settings has no switch for DIIS; benchmarks/paper_figures.py compares both",
        "choleskycpu": "orthonormalisation is compensated in float32, on every device",
        "float16": "float32, mixed and float64 are offered: --precision",
        **dict.fromkeys(("dense_ERI", "ipumult", "seperate", "eri_threshold"), ALWAYS),
        "ao_threshold": "grid points and AOs are all computed",
        **dict.fromkeys(("num", "id", "skip", "step"), "there are no numbered test molecules"),
        **dict.fromkeys(
            ("skipus", "skipeigh", "skiperi", "randeri"), "benchmarks/engine/stages.py has times"
        ),
        **dict.fromkeys(("sk", "forloop", "nan", "geneigh"), "there is no debugging mode"),
    }
)
"""Flags that are refused, with what to do or know instead."""

SAME = ("basis", "xc")
"""Flags that have the same name here, with two hyphens."""

TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


def translated(arguments: Sequence[str]) -> list[str]:
    """A command's arguments with the original's flags in our spelling.

    Args:
        arguments: without the name of the command.

    Raises:
        ValueError: a flag is done in another way now, or not at all; the message says how.
    """
    words = list(_words(arguments))
    found: list[str] = []
    while words:
        word = words.pop(0)
        name = word.lstrip("-")
        if not word.startswith("-"):
            found.append(word)
        elif name in SAME:
            found.append(f"--{name}")
        elif name.startswith("scale_"):
            raise ValueError(f"{word} is not offered: numbers need no scaling here; leave it out")
        elif name in NEW_FORM:
            option = NEW_FORM[name]
            found += [words.pop(0)] if option == "MOLECULE" and words else [option]
        elif name in SWITCHES:
            found += SWITCHES[name] if _on(words) else []
        elif name == "backend":
            _check_backend(words.pop(0) if words else "")
        elif name in WITHOUT_EFFECT:
            while words and not words[0].startswith("-") and _is_value(words[0]):
                words.pop(0)
        elif name in SENTENCES:
            raise ValueError(f"{word} is of the original PySCF-IPU; here: {SENTENCES[name]}")
        else:
            found.append(word)
    return found


def is_published(word: str) -> bool:
    """Whether a word is a flag of the original."""
    name = word.lstrip("-").partition("=")[0]
    tables = (NEW_FORM, SWITCHES, WITHOUT_EFFECT, SENTENCES, ("backend",), SAME)
    return word.startswith("-") and any(name in table for table in tables)


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """Flags and values by themselves, also from --its=20."""
    for word in arguments:
        name, equals, value = word.partition("=")
        if equals and is_published(word):
            yield from (name, value)
        else:
            yield word


def _on(words: list[str]) -> bool:
    """Whether a switch is on; a value after it (`--float32 true`) is taken away."""
    if words and words[0].lower() in TRUE + FALSE:
        return words.pop(0).lower() in TRUE
    return True


def _is_value(word: str) -> bool:
    return word.lower() in TRUE + FALSE or word.lstrip("-").isdigit()


def _check_backend(backend: str) -> None:
    if backend != "cpu":
        raise ValueError(
            f"-backend {backend}: there is no IPU to compute on; {PROFILE}. GPUs are used where "
            "JAX finds one"
        )
