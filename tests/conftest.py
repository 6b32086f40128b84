"""Settings of every test session.

Strict dtype promotion is the cheapest guard against a silent float64: an operation on a float32
and a float64 array raises instead of widening.
"""

import gc
import os

# One thread for the BLAS of NumPy and PySCF: the test processes share the cores already.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import jaxlib  # noqa: E402
import pytest  # noqa: E402
from packaging.version import Version  # noqa: E402
from type_checks import check_quickly  # noqa: E402

check_quickly()  # before the packages are imported
jax.config.update("jax_numpy_dtype_promotion", "strict")

# How long an example takes says something of the machine, not of the code.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


# A process of the tests holds millions of objects that stay, and tracing makes many more that live
# for seconds.  Python would look through them for cycles a thousand times while it collects tests.
gc.set_threshold(50_000, 20, 50)


def pytest_configure(config):
    os.fsync = lambda descriptor: None  # no test cuts the power, and waiting for the disk adds up
    compile_quickly()
    if config.pluginmanager.hasplugin("cacheprovider"):  # not with -p no:cacheprovider
        keep_compiled_programs(config.cache.mkdir("programs"))
    let_others_warn(config)


def compile_quickly():
    """Let XLA and LLVM optimise little, in this process and in those that it starts.

    Much of the tests' time is compiling.  Who sets a level in XLA_FLAGS keeps it: `.ci/run` runs
    most long tests with XLA's own level 3, as users do.  Tests of arithmetic that an optimiser
    could break ask for that level themselves, with `oracle.OPTIMISED`.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    # Code in 32 parts for as many cores takes a fifth more time of all cores together.
    parts = "--xla_cpu_parallel_codegen_split_count=1"
    quick = [] if parts in flags else [parts]  # a process of the tests inherits them
    if "xla_backend_optimization_level" not in flags:
        quick.append("--xla_backend_optimization_level=0")
        if Version(jaxlib.__version__) < Version("0.11.2"):  # later ones end at an unknown flag
            quick.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join([flags, *quick]).strip()


def keep_compiled_programs(folder):
    """Compile a program once for all test processes, their subprocesses, and later sessions.

    `pytest --cache-clear` empties the folder.  JAX names an entry by the program and by all that
    compiles it, so a change of the code never finds an old entry.
    """
    os.environ["PYSCF_IPU_CACHE"] = str(folder)  # where the commands keep theirs
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


def let_others_warn(config):
    """Let warnings of PySCF and ASE about themselves pass; those of the project stay errors."""
    for passed in (
        # NumPy 2.5 says so: ASE and PySCF reshape in place.
        r"ignore:Setting the shape on a NumPy array:DeprecationWarning:(ase|pyscf)\.",
        # PySCF's SCF objects leave their temporary checkpoint file to the garbage collector.
        "ignore:unclosed file.*:ResourceWarning",
        # Its guess from atomic densities calls a function that it has deprecated itself.
        r"ignore:\s*remove_linear_dep_:DeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", passed)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Call long tests slow, too, and put what takes long first, so that no process ends alone.

    That is, files with slow tests, and of these the ones of whole pages and commands, which lie
    higher than those of a room.
    """
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, len(item.path.parts)))


def pytest_collection_finish():
    """Modules and tests stay to the end: look for cycles among what comes later."""
    gc.collect()
    gc.freeze()
