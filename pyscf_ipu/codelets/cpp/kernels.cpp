// Compiled once per instruction set; ISA is the namespace, VECTOR_BYTES the width.
#include "kernels.hpp"

#include "attraction_gradient.hpp"
#include "becke.hpp"
#include "eri.hpp"
#include "eri_gradient.hpp"
#include "orbitals.hpp"
#include "nuclear_attraction.hpp"
#include "pair_gradient.hpp"
#include "repulsion.hpp"
#include "shell_pairs.hpp"
#include "supermatrix.hpp"
#include "xc.hpp"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

namespace pyscf_ipu::ISA {

template <class T>
Kernels<T> table() {
  return {shell_pairs<T>,         pair_gradient<T>,       supermatrix<T>,         repulsion<T>,     eri<T>,
          eri_gradient<T>,        nuclear_attraction<T>,  attraction_gradient<T>,
          becke_weights<T>,       ao_values<T>,           xc_density<T>,    xc_potential<T>};
}

InstructionSet kernels() {
  return {TEXT(ISA), VECTOR_BYTES, table<float>(), table<double>()};
}

}  // namespace pyscf_ipu::ISA
