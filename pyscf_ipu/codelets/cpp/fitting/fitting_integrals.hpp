// Integrals of density fitting, (P|ab) and (P|Q): the codelet "fitting_integrals".
//
// A vertex takes one auxiliary shell P against kWidth kets, one per vector lane.  A spherical
// auxiliary function has few Hermites, so it is contracted first; then the kets' E, which differ from
// lane to lane, are read once for all functions of the shell.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "integrals/eri_high.hpp"
#include "integrals/eri_sides.hpp"
#include "integrals/meetings.hpp"

namespace pyscf_ipu::ISA {

constexpr int kFittingWrittenOut = 2 * kWrittenOut;  // highest order of R that is written out

template <class T, int L>
__attribute__((noinline)) void hermite_written_out(const BoysFit<T>& fit, const Interaction<T>& of,
                                                   Vec<T> alpha, Vec<T> prefactor,
                                                   const Vec<T> (&d)[3], Vec<T>* r) {
  hermite_coulomb<T, L>(fit, of, alpha, prefactor, d[0], d[1], d[2], r);
}

// hermite_coulomb() of an order known at run time.
template <class T, int L = kFittingWrittenOut>
void hermite_of_order(int order, const BoysFit<T>& fit, const Interaction<T>& of, Vec<T> alpha,
                      Vec<T> prefactor, const Vec<T> (&d)[3], Vec<T>* r) {
  if (order > kFittingWrittenOut)
    hermite_coulomb_high<T>(order, fit, of, alpha, prefactor, d[0], d[1], d[2], r);
  else if (order == L)
    hermite_written_out<T, L>(fit, of, alpha, prefactor, d, r);
  else if constexpr (L > 0)
    hermite_of_order<T, L - 1>(order, fit, of, alpha, prefactor, d, r);
}

// One auxiliary class against one class of kets.
template <class T>
struct FittingVertex {
  const BoysFit<T>& fit;
  const Interaction<T>& of;
  const Side<T>&bra, &ket;
  const int order;
  std::vector<int> row;                             // [bra, ket], of the sum of two Hermites
  std::vector<std::vector<int>> of_bra, of_ket;     // the Hermites of each function or product
  std::vector<Vec<T>> r, half, result;              // half[k, f], result[g, f]

  FittingVertex(const BoysFit<T>* fits, const Interaction<T>& of, const Side<T>& bra,
                const Side<T>& ket)
      : fit(fits[bra.order + ket.order]), of(of), bra(bra), ket(ket), order(bra.order + ket.order),
        row(bra.hermites * ket.hermites), of_bra(hermites_of(bra)), of_ket(hermites_of(ket)),
        r(n_hermite(order)), half(ket.hermites * bra.products),
        result(ket.products * bra.products) {
    for_each_row(bra.order, [&](int t, int u, int v) {
      for_each_row(ket.order, [&](int a, int b, int c) {
        row[hermite_row(t, u, v) * ket.hermites + hermite_row(a, b, c)] =
            hermite_row(t + a, u + b, v + c);
      });
    });
  }

  static std::vector<std::vector<int>> hermites_of(const Side<T>& side) {
    std::vector<std::vector<int>> found(side.products);
    for (int h = 0; h < side.hermites; ++h)
      for (const int f : side.occupied[h]) found[f].push_back(h);
    return found;
  }

  void operator()(const ShellPair<T>& shell, const KetGroup<T>& group) {
    std::fill(result.begin(), result.end(), Vec<T>{});
    each_meeting(
        shell, group, [&] { std::fill(half.begin(), half.end(), Vec<T>{}); },
        [&](const auto& p, const auto& q) { contract_bra(p, q); },
        [&](const auto& q) { contract_ket(q); });
  }

 private:
  void contract_bra(const Primitive<T>& p, const KetVector<T>& q) {
    const auto [inverse_root, alpha, d] = Meeting<T>(p, q);
    hermite_of_order<T>(order, fit, of, alpha, inverse_root, d, r.data());
    const int functions = bra.products;
    for (int f = 0; f < functions; ++f) {
      const T* e = p.e + f * bra.hermites;
      for (const int h : of_bra[f]) {
        const int* at = row.data() + h * ket.hermites;
        for (int k = 0; k < ket.hermites; ++k) half[k * functions + f] += e[h] * r[at[k]];
      }
    }
  }

  void contract_ket(const KetVector<T>& q) {
    switch (bra.products) {  // (2 l + 1) or (l + 1) (l + 2) / 2 functions
      case 1: return contract_ket_of<1>(q);
      case 3: return contract_ket_of<3>(q);
      case 5: return contract_ket_of<5>(q);
      case 6: return contract_ket_of<6>(q);
      case 7: return contract_ket_of<7>(q);
      case 9: return contract_ket_of<9>(q);
      case 10: return contract_ket_of<10>(q);
      case 11: return contract_ket_of<11>(q);
      case 13: return contract_ket_of<13>(q);
      case 15: return contract_ket_of<15>(q);
      case 21: return contract_ket_of<21>(q);
      case 28: return contract_ket_of<28>(q);
      default: throw std::invalid_argument("auxiliary shells beyond i");
    }
  }

  template <int F>
  void contract_ket_of(const KetVector<T>& q) {
    for (int g = 0; g < ket.products; ++g) {
      Vec<T>* to = result.data() + g * F;
      Vec<T> sum[F];
#pragma GCC unroll 15
      for (int f = 0; f < F; ++f) sum[f] = to[f];
      for (const int k : of_ket[g]) {
        const Vec<T> e = load<T>(q.e + (g * ket.hermites + k) * kWidth<T>);
        const Vec<T>* from = half.data() + k * F;
#pragma GCC unroll 15
        for (int f = 0; f < F; ++f) sum[f] += from[f] * e;
      }
#pragma GCC unroll 15
      for (int f = 0; f < F; ++f) to[f] = sum[f];
    }
  }
};

// out[ket row, function] from result[g, f, lane].
template <class T>
void write_fitting(const FittingVertex<T>& vertex, const ShellPair<T>& shell,
                   const PairStrip<T>& kets, const KetGroup<T>& group, std::int64_t functions,
                   T* out) {
  const T* from = reinterpret_cast<const T*>(vertex.result.data());
  const int n = vertex.bra.products;
  for (int lane = 0; lane < group.lanes; ++lane) {
    T* to = out + kets.pairs[group.first + lane].row * functions + shell.row;
    for (int g = 0; g < vertex.ket.products; ++g)
      for (int f = 0; f < n; ++f) to[g * functions + f] = from[(g * n + f) * kWidth<T> + lane];
  }
}

// Bras and kets, each without what is negligible beside the largest of the others.
template <class T>
struct FittingSides {
  const int highest_bra, highest_ket, highest;
  const Sizes<T> bra_sizes, ket_sizes;
  const std::vector<Side<T>> bras, kets;
  const std::vector<BoysFit<T>> fits;

  explicit FittingSides(const FittingProblem<T>& problem, int derivative = 0)
      : highest_bra(highest_of(problem.bras)), highest_ket(highest_of(problem.kets)),
        highest(std::max(highest_bra, highest_ket)), bra_sizes(problem.bras, highest),
        ket_sizes(problem.kets, highest),
        bras(sides_of(problem.bras, bra_sizes, ket_sizes.largest)),
        kets(sides_of(problem.kets, ket_sizes, bra_sizes.largest)),
        fits(read_fits<T>(problem.boys, highest_bra + highest_ket + derivative)) {}
};

template <class T>
void fitting_integrals(const FittingProblem<T>& problem, T* out) {
  const FittingSides<T> found(problem);
  std::fill_n(out, problem.rows * problem.functions, T(0));
  for (const auto& ket : found.kets) {
    std::vector<FittingVertex<T>> vertices;
    for (const auto& bra : found.bras)
      vertices.emplace_back(found.fits.data(), problem.of, bra, ket);
    for (const auto& strip : ket.strips)
      for (const auto& group : strip.groups)
        for (auto& vertex : vertices)
          for (const auto& shell : vertex.bra.strips.front().pairs) {
            vertex(shell, group);
            write_fitting(vertex, shell, strip, group, problem.functions, out);
          }
  }
}

}  // namespace pyscf_ipu::ISA
