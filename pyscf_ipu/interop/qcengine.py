"""QCEngine's program "pyscf-ipu"; importing this module registers it::

    import pyscf_ipu.interop.qcengine
    qcengine.compute(atomic_input, "pyscf-ipu")

So geomeTRIC, optking, torsion drives and the workers of QCFractal reach the engine.
"""

from importlib.metadata import version
from typing import ClassVar

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import DISTRIBUTION, how_to_install
from pyscf_ipu.interop.qcschema import compute

try:
    from qcelemental.models import v2
    from qcengine.config import TaskConfig
    from qcengine.programs.base import list_all_programs, register_program
    from qcengine.programs.model import ProgramHarness
except ImportError as error:
    raise MissingPackage(f"QCEngine is missing: run {how_to_install('qcschema')}") from error

NAME = "pyscf-ipu"


class Harness(ProgramHarness):
    """The engine as QCEngine calls it: in this process, with the programs it has compiled."""

    _defaults: ClassVar[dict[str, object]] = {
        "name": NAME,
        "scratch": False,
        "thread_safe": True,
        "thread_parallel": True,
        "node_parallel": False,
        "managed_memory": False,
    }

    @staticmethod
    def found(raise_error: bool = False) -> bool:
        """Whether the program is there: it is, in this process."""
        return True

    def get_version(self) -> str:
        """The version of this package."""
        return version(DISTRIBUTION)

    def compute(
        self, input_data: v2.AtomicInput, config: TaskConfig
    ) -> v2.AtomicResult | v2.FailedOperation:
        """Answer an input; what QCEngine grants in cores and memory is not asked.

        Args:
            input_data: a model.
            config: how QCEngine was told to run.
        """
        return compute(self.build_input_model(input_data))  # type: ignore[return-value]


if NAME not in list_all_programs():
    register_program(Harness())  # type: ignore[call-arg]
