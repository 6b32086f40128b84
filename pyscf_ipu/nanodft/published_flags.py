"""The flags of the original PySCF-IPU, in the spelling of this package.

Its two programs are nanoDFT (`--mol_str benzene --its 20`) and density_functional_theory.py
(`-methane -backend cpu -float32`). What has the same meaning is translated. What is done in another
way ends in a sentence with the new form, and what has no meaning here in one that says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from pyscf_ipu.errors import UsageError

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
        "he": ("He 0 0 0",),
        "pyscf": ("--compare",),
        "float32": ("--precision", "float32"),
        "enable64": ("--precision", "float64"),
    }
)
"""Flags that are on or off, and what stands for them where they are on."""

WITHOUT_EFFECT = ("verbose", "v", "benchmark", "jit", "skippyscf", "skip_minao", "threads")
WITHOUT_EFFECT += ("threads_int", "multv", "intv", "batches", "ndevices", "plevel", "debug")
"""Flags that are left out in silence: they change no number, or name what is always done."""

ONLY: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "diis": (("true", "1", "yes"), "the SCF always uses DIIS, and there is no switch for it"),
        "spin": (("0",), "molecules are closed shells here: 2S = 0"),
        "backend": (
            ("cpu",),
            "there is no IPU to compute on; pyscf-ipu rks MOLECULE --ipu bow prices the run on a "
            "simulated IPU. GPUs are used where JAX finds one",
        ),
    }
)
"""Flags of which one value is what is done here, and is left out; the others are refused."""

GENERATE = "qm1b generate FILE --preset qm1b --conformers 1000 --out DIR makes a dataset"
PROFILE = "pyscf-ipu rks MOLECULE --ipu bow prices the run on a simulated IPU"
ALWAYS = "the integrals are always the package's own, and there is nothing to choose"
SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("save", "fname", "gname", "num_conformers"), GENERATE),
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
        "density_mixing": "damping is tried by itself where an SCF does not converge",
        "skipdiis": "the SCF always uses DIIS; benchmarks/paper_figures.py shows both",
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
"""Flags that are refused, with what to do or know instead; what is false or zero is left out."""

MAKES_DATA = ("generate", "gdb")
"""Flags that ask for a dataset: the whole command line has a new form."""

DATASET: Mapping[str, str] = MappingProxyType(
    {
        "num_conformers": "--conformers",
        "limit": "--limit",
        "randomSeed": "--seed",
        "rattled_std": "--rattle-angstrom",
        "uniform_pyscf": "--audit",
        "basis": "--basis",
        "level": "--grid-level",
    }
)
"""Flags of a dataset that take one value, and the options of `qm1b generate` for them."""

OF_THE_PRESET = {"basis": ("sto-3g", "sto3g"), "level": ("0",)}
"""Their values that `--preset qm1b` has anyway; of functionals the original has only QM1B's."""

SAME = ("basis", "xc")
"""Flags that have the same name here, with two hyphens."""

SCALE = "scale_"
"""How the flags of scaled tensors begin."""

TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")


def translated(arguments: Sequence[str]) -> list[str]:
    """A command's arguments with the original's flags in our spelling.

    Args:
        arguments: without the name of the command.

    Raises:
        UsageError: a flag is done in another way now, or not at all; the message says how.
    """
    words = list(_words(arguments))
    if made := [word for word in words if word.startswith("-") and word.lstrip("-") in MAKES_DATA]:
        raise _elsewhere(made[0], dataset_command(words))
    found: list[str] = []
    while words:
        word = words.pop(0)
        name = word.lstrip("-")
        if not word.startswith("-"):
            found.append(word)
        elif name in SAME:
            found.append(f"--{name}")
        elif name.startswith(SCALE):
            raise UsageError(f"{word} is not offered: numbers need no scaling here; leave it out")
        elif name in NEW_FORM:
            option = NEW_FORM[name]
            found += [words.pop(0)] if option == "MOLECULE" and words else [option]
        elif name in SWITCHES:
            found += SWITCHES[name] if _on(words) else []
        elif name in ONLY:
            _check_value(word, words)
        elif name in WITHOUT_EFFECT:
            while words and not words[0].startswith("-") and _is_value(words[0]):
                words.pop(0)
        elif name in SENTENCES:
            if not _is_off(words):
                raise _elsewhere(word, SENTENCES[name])
        else:
            found.append(word)
    return found


def is_published(word: str) -> bool:
    """Whether a word is a flag of the original."""
    name = word.lstrip("-").partition("=")[0]
    tables = (NEW_FORM, SWITCHES, WITHOUT_EFFECT, ONLY, SENTENCES, MAKES_DATA, SAME)
    known = name.startswith(SCALE) or any(name in table for table in tables)
    return word.startswith("-") and known


def dataset_command(words: Sequence[str]) -> str:
    """The commands that make the dataset of an original command line, with its values.

    Args:
        words: with `-generate` or `-gdb` among them.
    """
    given = {
        word.lstrip("-"): [*takewhile(lambda value: not value.startswith("-"), words[i + 1 :])]
        for i, word in enumerate(words)
        if word.startswith("-")
    }
    size = "".join(given.get("gdb", []))
    file = f"gdb11_size{int(size):02}.smi" if size.isdecimal() else "FILE"
    found = ["qm1b", "generate", file, "--preset", "qm1b"]
    for name, option in DATASET.items():
        value = given.get(name, [])[:1]
        if value and value[0].lower() not in OF_THE_PRESET.get(name, ()):
            found += [option, *value]
    name = "".join(given.get("fname", []) or given.get("gname", [])) or "qm1b"
    found += ["--out", f"data/{name}"]
    if len(part := given.get("split", [])) == 2:
        found += ["--shard", "/".join(part)]
        return f"{' '.join(found)}; qm1b merge data/{name}/part-* --out data/{name} joins the parts"
    return " ".join(found)


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


def _elsewhere(word: str, how: str) -> UsageError:
    return UsageError(f"{word} is of the original PySCF-IPU; here: {how}")


def _is_value(word: str) -> bool:
    return word.lower() in TRUE + FALSE or word.lstrip("-").isdigit()


def _is_off(words: list[str]) -> bool:
    """Whether false or zero follows, which asks for nothing; it is taken away then."""
    off = bool(words) and (words[0].lower() in FALSE or _is_zero(words[0]))
    if off:
        words.pop(0)
    return off


def _is_zero(word: str) -> bool:
    try:
        return float(word) == 0
    except ValueError:
        return False


def _check_value(word: str, words: list[str]) -> None:
    """Take away the value of a flag that has only one here."""
    allowed, why = ONLY[word.lstrip("-")]
    if word.lstrip("-") == "diis" and not (words and words[0].lower() in TRUE + FALSE):
        return  # on, without a value
    if not words or words[0].startswith("-"):
        raise UsageError(f"{word} has no value: give {allowed[0]}, or leave it out")
    value = words.pop(0)
    if value.lower() not in allowed:
        raise UsageError(f"{word} {value}: {why}")
