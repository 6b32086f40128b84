// What the handlers call and the kernels define, once per instruction set.
#pragma once

#include <cstdint>
#include <vector>

namespace pyscf_ipu {

constexpr int kMaxOrder = 6;  // Hermite order of a pair of f shells
constexpr int kWrittenOut = 4;  // of a pair of d shells: up to it, loops over quartets are written out

// Degree of the fit of numerics/boys.py, a series that the kernels have unrolled.
template <class T>
constexpr int boys_degree(int order) { return sizeof(T) == 4 ? 20 + 2 * order : 56 + order; }

// What electrons interact by: full / r + long_range erf(omega r) / r; see numerics/interaction.py.
template <class T>
struct Interaction {
  T full, long_range, omega;
};

// One pair class as strips.StripData has it, S strips of `chunks` chunks of `depth` primitive pairs:
// p[S, chunks, depth], centres [.., 3], e[.., products, hermites] with the prefactor
// sqrt(2) pi^(5/4) / p; segment[S, chunks] is the shell pair, of `pairs`, that a chunk belongs to.
template <class T>
struct EriClass {
  int order, products, strips, chunks, depth, pairs;
  std::int64_t first_row;
  const T *p, *high, *low, *e;
  const std::int32_t* segment;
};

// blocks[n, 4]: bra class, ket class, bra strip, ket strip.
// boys: per order 0, 1, .. up to twice the largest of a class: scale, shift, number of Chebyshev
// coefficients, coefficients.
template <class T>
struct EriProblem {
  std::vector<EriClass<T>> classes;
  const std::int32_t* blocks;
  std::int64_t n_blocks, rows;
  const double* boys;
  Interaction<T> of;
};

// How one interaction enters the supermatrix: factors of its integrals as Coulomb and as exchange.
template <class T>
struct SupermatrixPass {
  Interaction<T> of;
  T coulomb, exchange;
};

// aos[rows, 2]: the two AOs of every row of the tile plan, or -1; places[n_aos, n_aos]: of AO pairs in
// G; elements of half of it; whether exchange stands apart, in a second half.
template <class T>
struct SupermatrixProblem {
  EriProblem<T> eri;
  std::vector<SupermatrixPass<T>> passes;
  const std::int32_t *aos, *places;
  std::int32_t n_aos;
  std::int64_t elements;
  bool apart;
};

// The integrals of auxiliary shells (bras, a strip of "pairs" of one shell each) with pairs of AOs, or
// with one another; see fitting/three_index.py.  Rows and functions: those of the result.
template <class T>
struct FittingProblem {
  std::vector<EriClass<T>> bras, kets;
  std::int64_t rows, functions;
  const double* boys;
  Interaction<T> of;
};

// Derivatives of the sum of weights[rows, functions] times these integrals: by the centres of the
// auxiliary classes [shells, depth, 3], and of every class of kets by centre and e.
template <class T>
struct FittingGradientProblem {
  FittingProblem<T> integrals;
  const T* weights;
  std::vector<T*> bra_centres, ket_centres, ket_e;
};

// The integrals over the rows of the tile plan and the Cholesky factor of the metric [functions,
// functions], lower; row[pairs]: of every AO pair.
struct SolutionProblem {
  const double *integrals, *factor;
  const std::int32_t* row;
  std::int64_t pairs, functions;
};

// B[functions, pairs] and which pairs have any; a density over AO pairs, off-diagonal elements doubled;
// the first `count` of vectors[n, width], whose squares with these signs are a density, too.  A rough K
// is computed in float.
template <class T>
struct RepulsionProblem {
  const T* b;
  const std::int32_t* present;
  const T *density, *vectors, *signs;
  std::int64_t functions, pairs, n, width, count;
  bool with_coulomb, rough;
  const T* row(std::int64_t function) const { return b + function * pairs; }
};

// Which row of the tile plan an AO pair has, row[n, n]; the first `used` of columns[n, width] of a
// density.
template <class T>
struct ColumnsProblem {
  const std::int32_t* row;
  const T* columns;
  std::int64_t n, width, used, functions;
};

// Derivatives by one class's data: centre[S, chunks, depth, 3], e[S, chunks, depth, products,
// hermites]; pattern[products, hermites]: which E can be other than zero in any geometry.
template <class T>
struct EriGradientClass {
  const std::int32_t* pattern;
  T *centre, *e;
};

// The energy of a density matrix [n_ao, n_ao]; products[rows, 3]: the two AOs of a row of the tile
// plan, and how often their product stands in a symmetric matrix.
template <class T>
struct EriGradientProblem {
  EriProblem<T> eri;
  std::vector<EriGradientClass<T>> gradients;
  const T* density;
  const std::int32_t* products;
  std::int64_t n_ao;
  T coulomb, exchange;  // fractions
};

// Points [T, Gb, 3] relative to their owners [T, Gb], whose positions are high + low [A, 3]; all
// exponents and all coefficients in two words; the rows of orbitals.shell_table; pure_d [d_functions, 6] makes d functions of x^2, xy, ..., and
// pure_f [f_functions, 10] f functions of x^3, x^2 y, ...
template <class T>
struct AoProblem {
  const T* points;
  const std::int32_t* owner;
  const T *high, *low, *exponents, *exponents_low, *coefficients, *coefficients_low;
  const std::int32_t* shells;
  std::int64_t n_shells;
  const double *pure_d, *pure_f;
  int d_functions, f_functions;
  std::int64_t tiles, planes, n_ao, count;
};

// An AO is left out where the integral of its square and its gradient's is below that of
// `negligible`; weights[T, Gb].
template <class T>
struct Screen {
  const T* weights;
  T negligible;
};

// Points that share one list of AOs; see SCREENED_POINTS in grid/ao_blocks.py.
constexpr std::int64_t kScreened = 64;

// AO values [T, D, N, Gb], of which count[T] AOs, the first, are to be read: those with the numbers
// aos[T, N].  `tile`: from one T to the next.
template <class T>
struct AoBlocks {
  const T* values;
  const std::int32_t *aos, *count;
  std::int64_t tiles, tile, planes, n, points;
};

// D = sum_o s_o c_o c_o^T over the first `count` columns of vectors[N, width].
template <class T>
struct DensityColumns {
  const T *vectors, *signs;
  std::int64_t width, count;
};

// The semilocal energy's derivative by the nuclei: factors[T, moments, Gb] are its derivatives by the
// density and, as far as there are any, by the density's gradient and the kinetic energy density.
template <class T>
struct XcGradientProblem {
  AoProblem<T> at;
  AoBlocks<T> ao;
  const T* factors;
  DensityColumns<T> density;  // with no negative sign; a negative count: vectors is D itself
  std::int64_t moments, atoms;
};

// One pair class and the nuclei: p[primitives], centres [primitives, 3], e[primitives, products,
// hermites], atom[primitives / depth] (own nucleus, left out, or -1), charge[atoms], nuclei [atoms, 3];
// boys: the fit of this order.  Result: [primitives / depth, products].
template <class T>
struct Attraction {
  int order, products, depth;
  std::int64_t primitives, atoms;
  const T *p, *high, *low, *e;
  const std::int32_t* atom;
  const T *charge, *nuclei_high, *nuclei_low;
  const double* boys;
};

// Derivatives of the attraction of products with weights[primitives / depth, products]: by centres
// [primitives, 3], e[primitives, products, hermites] and nuclei [atoms, 3].
template <class T>
struct AttractionGradient {
  const T* weights;
  T *centre, *e, *nuclei;
};

// One side of a set of shell pairs, a shell group: exponents[shells, primitives], coefficients
// [shells, primitives, columns] and centres [shells, 3] in two words; index[pairs] into the shells;
// powers[components, 4]: x, y, z and the column; transform[functions, components].
template <class T>
struct PairShells {
  const T *exponents, *exponents_low, *coefficients, *coefficients_low, *high, *low;
  const std::int32_t *index, *powers;
  const double* transform;
  std::int64_t primitives;
  int columns, components, functions, highest;
};

// Results: p[pairs, k], centres [pairs, k, 3], e[pairs, k, f, h], kinetic[pairs, f] for the k pairs of
// primitives, the f products of functions and the h Hermites of `order`.
template <class T>
struct PairProblem {
  PairShells<T> a, b;
  std::int64_t pairs;
  int order;
  T *p, *high, *low, *e, *kinetic;
};

// One pair class as strips.StripData has it: chunks of `depth` primitive pairs, and rows of products.
template <class T>
struct PairClass {
  int order, products, depth;
  std::int64_t chunks, rows;
  T *p, *high, *low, *e, *kinetic;
};

// The pairs of two groups of a class: where[] each chunk lies among those of the strips, place[] each
// pair; atoms of both shells, for derivatives.
template <class T>
struct PairMember {
  PairShells<T> a, b;
  std::int64_t pairs;
  int of_class;
  const std::int32_t *where, *place, *atom_a, *atom_b;
};

template <class T>
struct PairStrips {
  std::vector<PairClass<T>> classes;
  std::vector<PairMember<T>> members;
};

// A class as attraction by nuclei takes it, and of each of its chunks the shell pair, of `pairs` in a
// strip of `chunks`.
template <class T>
struct OneElectronClass {
  Attraction<T> of;
  const std::int32_t* segment;
  std::int64_t chunks, pairs;
};

// Row-major arrays in and out; shapes as in the portable vertex of the same name.
template <class T>
struct Kernels {
  void (*pair_strips)(const PairStrips<T>& to);
  // out[A, 3] from derivatives in the places of high, e and kinetic; see gradient/pairs.py.
  void (*pair_gradient)(const PairStrips<T>& from, std::int64_t atoms, T* out);
  // half[P (P + 1) / 2]; see integrals/supermatrix.py.
  void (*supermatrix)(const SupermatrixProblem<T>& problem, T* half);
  // y[P], energy[2] from half[P (P + 1) / 2], d[P]; see integrals/supermatrix.py.
  void (*repulsion)(const T* half, const T* d, std::int64_t pairs, T* y, T* energy);
  // matrix[rows, rows]: all (ab|cd) over the rows of the tile plan.
  void (*eri)(const EriProblem<T>& problem, T* matrix);
  // out[rows, functions]: all (P|ab) or (P|Q).
  void (*fitting_integrals)(const FittingProblem<T>& problem, T* out);
  void (*fitting_gradient)(const FittingGradientProblem<T>& problem);
  // out[functions, pairs]: B.
  void (*fitting_solution)(const SolutionProblem& problem, T* out, std::int32_t* present);
  // charge[functions] and J[pairs] of the density, K[pairs] of the vectors.
  void (*fitting_repulsion)(const RepulsionProblem<T>& problem, T* charge, T* coulomb, T* exchange);
  // out[n, width, functions] from integrals[rows, functions].
  void (*fitting_columns)(const ColumnsProblem<T>& problem, const T* integrals, T* out);
  // Adds to weights[rows, functions] from w[n, width, functions].
  void (*fitting_weights)(const ColumnsProblem<T>& problem, const T* w, T* weights);
  void (*eri_gradient)(const EriGradientProblem<T>& problem);
  // overlap[rows], nuclear[rows] and dipole[3, rows] of all classes.
  void (*one_electron)(const std::vector<OneElectronClass<T>>& classes, std::int64_t rows, T* overlap,
                       T* nuclear, T* dipole);
  void (*attraction_gradient)(const Attraction<T>& attraction, const AttractionGradient<T>& to);
  // out[M, G] from points[M, G, 3], volume[M, G], owner[M] and A atoms; see grid/becke.py.
  void (*becke_weights)(const T* points, const T* volume, const std::int32_t* owner, const T* high,
                        const T* low, const T* radius, const bool* mask, std::int64_t slots,
                        std::int64_t count, std::int64_t atoms, T* out);
  // out[A, 3] from points, by_volume[M, G], owner[M] and A atoms; see gradient/points/weights.py.
  void (*becke_gradient)(const T* points, const T* by_volume, const std::int32_t* owner,
                         const T* high, const T* low, const T* radius, const bool* mask,
                         std::int64_t slots, std::int64_t count, std::int64_t atoms, T* out);
  // out[3, G] from points[G, 3] and omega, kappa, electrons[G]: sums of VV10 over pairs of points, and
  // those of their slopes.
  void (*nonlocal_pairs)(const T* points, const T* omega, const T* kappa, const T* electrons,
                         std::int64_t count, T* out);
  void (*nonlocal_gradient)(const T* points, const T* omega, const T* kappa, const T* electrons,
                            std::int64_t count, T* out);
  // out[T, D, N, Gb]: values and, for D = 4, gradients.
  void (*ao_values)(const AoProblem<T>& problem, T* values);
  // The same with AOs that count first, and which they are: see AoBlocks.
  void (*packed_ao_values)(const AoProblem<T>& problem, const Screen<T>& screen, T* values,
                           std::int32_t* aos, std::int32_t* count);
  // out[T, D, Gb] from density[N, N].
  void (*xc_density)(const AoBlocks<T>& ao, const T* density, T* out);
  // out[N, N] from factors[T, moments, Gb], in the working precision or in double.
  void (*xc_potential)(const AoBlocks<T>& ao, const T* factors, std::int64_t moments, T* out);
  void (*wide_xc_potential)(const AoBlocks<T>& ao, const T* factors, std::int64_t moments,
                            double* out);
  // out[T, moments, Gb]: density, gradient and kinetic energy density, as far as they are wanted.
  void (*xc_moments)(const AoBlocks<T>& ao, const DensityColumns<T>& density, std::int64_t moments,
                     T* out);
  // out[N, N]: the matrix of xc_potential and its transpose, times the columns.
  void (*xc_projection)(const AoBlocks<T>& ao, const T* factors, const DensityColumns<T>& density,
                        std::int64_t moments, double* out);
  // out[A, 3]; see gradient/points/exchange_correlation.py.
  void (*xc_gradient)(const XcGradientProblem<T>& problem, T* out);
  // out_high[rows], out_low[rows] from high and low [rows, count]; see tiles/total.py.
  void (*compensated_sum)(const T* high, const T* low, std::int64_t rows, std::int64_t count,
                          T* out_high, T* out_low);
  void (*compensated_dot)(const T* a, const T* high, const T* low, std::int64_t rows,
                          std::int64_t count, T* out_high, T* out_low);
  // out[n, m] from a[n, k] and b[k, m], all in two words; see tiles/total.py.
  void (*exact_product)(const T* a_high, const T* a_low, const T* b_high, const T* b_low,
                        std::int64_t n, std::int64_t k, std::int64_t m, T* out_high, T* out_low);
};

struct InstructionSet {
  const char* name;
  Kernels<float> single_precision;
  Kernels<double> double_precision;
  template <class T>
  const Kernels<T>& of() const;
};

template <>
inline const Kernels<float>& InstructionSet::of<float>() const { return single_precision; }
template <>
inline const Kernels<double>& InstructionSet::of<double>() const { return double_precision; }

namespace baseline { template <class T> Kernels<T> table(); }
namespace avx2 { template <class T> Kernels<T> table(); }
namespace avx512 { template <class T> Kernels<T> table(); }

}  // namespace pyscf_ipu
