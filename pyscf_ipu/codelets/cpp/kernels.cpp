// Compiled once per instruction set and precision: ISA is the namespace, VECTOR_BYTES the width, and
// REAL float or double.
#include "kernels.hpp"

#include "fitting/fitting_columns.hpp"
#include "fitting/fitting_gradient.hpp"
#include "fitting/fitting_integrals.hpp"
#include "fitting/fitting_repulsion.hpp"
#include "fitting/fitting_solution.hpp"
#include "gradients/attraction_gradient.hpp"
#include "grid/becke_gradient.hpp"
#include "gradients/repulsion/eri_gradient.hpp"
#include "gradients/pair_gradient.hpp"
#include "gradients/xc_gradient.hpp"
#include "grid/becke.hpp"
#include "grid/nonlocal_pairs.hpp"
#include "grid/orbitals.hpp"
#include "grid/projection.hpp"
#include "grid/xc.hpp"
#include "integrals/eri.hpp"
#include "supermatrix/half_matrix.hpp"
#include "integrals/one_electron.hpp"
#include "supermatrix/repulsion.hpp"
#include "integrals/pair_strips.hpp"
#include "totals.hpp"

namespace pyscf_ipu::ISA {

template <class T>
Kernels<T> table() {
  return {pair_strips<T>,         pair_gradient<T>,       supermatrix<T>,         repulsion<T>,     eri<T>,
          fitting_integrals<T>,   fitting_gradient<T>,    fitting_solution<T>,    fitting_repulsion<T>,
          fitting_columns<T>,     fitting_weights<T>,     eri_gradient<T>,        one_electron<T>,        attraction_gradient<T>,
          becke_weights<T>,       becke_gradient<T>,      nonlocal_pairs<T>,      nonlocal_gradient<T>,
          ao_values<T>,           packed_ao_values<T>,    xc_density<T>,          xc_potential<T, T>,
          xc_potential<T, double>, xc_moments<T>,         xc_projection<T>,       xc_gradient<T>,
          compensated_sum<T>,     compensated_dot<T>,  exact_product<T>};
}

template Kernels<REAL> table<REAL>();

}  // namespace pyscf_ipu::ISA
