// Integrals straight into half of the supermatrix: the codelet "supermatrix".
//
// G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] is kept as its half L, L + L^T = G: the lower triangle,
// packed by rows, the diagonal halved.  An integral v = (ij|kl) stands in three elements:
// G[ij,kl] as Coulomb, and G[ik,jl] and G[il,jk] as exchange.  So each is added where it belongs
// as soon as it is known, and the matrix of all integrals is never stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "integrals/eri.hpp"

namespace pyscf_ipu::ISA {

// Number of elements in the first `row` rows of a packed triangle.  Written so that nothing between
// is larger than the result; like what follows, for a number or a vector of them.
template <class V>
inline V triangle(V row) { return ((row + 1) >> 1) * (row | 1); }

// Place of (a, b) in a packed triangle, whichever of them is the row.
template <class V>
inline V place(V a, V b) {
  const V high = a > b ? a : b, low = a > b ? b : a;
  return triangle<V>(high) + low;
}

// The places in L of (ij|kl) as a Coulomb and as two exchange integrals, and its factors there.
template <class V, class X>
struct Terms {
  V at[3];
  X factor[3];

  // Of four different AOs.
  Terms(V i, V j, V k, V l, V ij, V kl)
      : at{place<V>(ij, kl), place<V>(place<V>(i, k), place<V>(j, l)),
           place<V>(place<V>(i, l), place<V>(j, k))} {}

  // Of AOs that may be equal: an integral may stand twice in an element of G, both exchange terms
  // may be the same element, and L has only half of G's diagonal.
  void count(V i, V j, V k, V l, V ij, V kl) {
    const X none{}, one = none + 1, two = none + 2, half = one / 2;
    factor[0] = (ij == kl) ? half : one;
    const X diagonal = (place<V>(i, k) == place<V>(j, l)) ? half : one;
    factor[1] = diagonal * (((j == l) | (i == k)) ? two : one);
    const X across = (place<V>(i, l) == place<V>(j, k)) ? half : one;
    factor[2] = across * (((j == k) | (i == l)) ? two : one);
    factor[2] = ((i == j) | (k == l)) ? none : factor[2];
  }
};

// Adds integrals to half of G, a vector of kets at a time.
template <class T>
struct HalfMatrix : Taker<T> {
  using I = IntVec<T>;
  static constexpr int w = kWidth<T>;

  struct Ket {
    I k, l, kl, out;  // AOs of a product, its place, and the lanes in which there is none
  };

  const std::int32_t* const aos;  // [rows, 2]: the two AOs of a product; -1 where there is none
  const T coulomb, exchange;      // factors of the two kinds of terms
  T* const half;
  std::vector<Ket> strip;  // [group, product] of the kets at hand
  I before;                // lanes that are not wanted
  int same;                // the lane in which the ket is the bra, or -1

  HalfMatrix(const std::int32_t* aos, T coulomb, T fraction, T* half)
      : aos(aos), coulomb(coulomb), exchange(T(-0.25) * fraction), half(half) {}

  void open(const PairStrip<T>& kets, int products) override {
    strip.assign(kets.groups.size() * products, Ket{});
    for (std::size_t n = 0; n < kets.groups.size(); ++n)
      for (int lane = 0; lane < w; ++lane) {
        const auto& group = kets.groups[n];
        const std::int64_t row = kets.pairs[group.first + std::min(lane, group.lanes - 1)].row;
        for (int g = 0; g < products; ++g) {
          Ket& ket = strip[n * products + g];
          const bool out = lane >= group.lanes || is_out(row, g);
          ket.out[lane] = -int(out);
          ket.k[lane] = out ? 0 : aos[2 * (row + g)];
          ket.l[lane] = out ? 0 : aos[2 * (row + g) + 1];
          ket.kl = place<I>(ket.k, ket.l);
        }
      }
  }

  void take(const std::vector<Vec<T>>& result, const ShellPair<T>& bra, int products,
            const PairStrip<T>& kets, int n, int first_lane, int ket_products) override {
    const auto& group = kets.groups[n];
    for (int lane = 0; lane < w; ++lane) before[lane] = -int(lane < first_lane);
    same = kets.pairs[group.first + first_lane].row == bra.row ? first_lane : -1;
    for (int f = 0; f < products; ++f) {
      if (is_out(bra.row, f)) continue;
      const std::int32_t* ij = aos + 2 * (bra.row + f);
      for (int g = 0; g < ket_products; ++g)
        add(ij[0], ij[1], strip[n * ket_products + g], result[f * ket_products + g]);
    }
  }

 private:
  // Whether a product does not exist, or stands in the same shell pair a second time.
  bool is_out(std::int64_t row, int product) const {
    const std::int32_t *first = aos + 2 * row, *at = first + 2 * product;
    return at[0] < 0 || (first[0] == first[1] && at[0] < at[1]);
  }

  __attribute__((always_inline)) void add(std::int32_t first, std::int32_t second, const Ket& ket,
                                          Vec<T> x) {
    const I i = I{} + first, j = I{} + second, ij = place<I>(i, j);
    x = select<T>(ket.out | before, Vec<T>{}, x);
    if (same >= 0 && ij[0] < ket.kl[same]) x[same] = 0;
    Terms<I, Vec<T>> terms(i, j, ket.k, ket.l, ij, ket.kl);
    const I equal = (ket.k == ket.l) | (ket.k == i) | (ket.k == j) | (ket.l == i) | (ket.l == j);
    if (first != second && !any<T>(equal)) {
      add_each<T>(half, terms.at[0], coulomb * x);
      if (exchange == T(0)) return;
      add_each<T>(half, terms.at[1], exchange * x);
      add_each<T>(half, terms.at[2], exchange * x);
    } else {
      terms.count(i, j, ket.k, ket.l, ij, ket.kl);
      add_each<T>(half, terms.at[0], coulomb * x * terms.factor[0]);
      if (exchange == T(0)) return;
      add_each<T>(half, terms.at[1], exchange * x * terms.factor[1]);
      add_each<T>(half, terms.at[2], exchange * x * terms.factor[2]);
    }
  }
};

// half[P (P + 1) / 2]; one pass for each interaction.
template <class T>
void supermatrix(const SupermatrixProblem<T>& problem, T* half) {
  std::fill_n(half, problem.elements, T(0));
  for (const auto& pass : problem.passes) {
    HalfMatrix<T> taker(problem.aos, pass.coulomb, pass.exchange, half);
    EriProblem<T> one = problem.eri;
    one.of = pass.of;
    each_block<T>(one, taker);
  }
}

}  // namespace pyscf_ipu::ISA
