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

// Place of (a, b) in a packed triangle, whichever of them is the row; nothing between is larger than
// the result.
template <class T>
inline IntVec<T> place(IntVec<T> a, IntVec<T> b) {
  const IntVec<T> high = a > b ? a : b, low = a > b ? b : a;
  return ((high + 1) >> 1) * (high | 1) + low;
}

// The places in L of (ij|kl) as a Coulomb and as two exchange integrals, and its factors there.
template <class T>
struct Terms {
  using I = IntVec<T>;
  const I i, j, k, l;
  const I pairs[3][2];  // of AOs: those of a row and a column of G
  const I at[3];

  Terms(I i, I j, I k, I l)
      : i(i), j(j), k(k), l(l),
        pairs{{place<T>(i, j), place<T>(k, l)},
              {place<T>(i, k), place<T>(j, l)},
              {place<T>(i, l), place<T>(j, k)}},
        at{place<T>(pairs[0][0], pairs[0][1]), place<T>(pairs[1][0], pairs[1][1]),
           place<T>(pairs[2][0], pairs[2][1])} {}

  // Of AOs that may be equal: an integral may stand twice in an element of G, both exchange terms
  // may be the same element, and L has only half of G's diagonal.
  Vec<T> factor(int term) const {
    const Vec<T> none{}, one = none + 1, two = none + 2, half = one / 2;
    const Vec<T> of_diagonal = (pairs[term][0] == pairs[term][1]) ? half : one;
    if (term == 0) return of_diagonal;
    const I twice = term == 1 ? (j == l) | (i == k) : (j == k) | (i == l);
    const Vec<T> found = of_diagonal * (twice ? two : one);
    return term == 1 ? found : ((i == j) | (k == l)) ? none : found;
  }
};

// Adds integrals to half of G, a vector of kets at a time.
template <class T>
struct HalfMatrix : Taker<T> {
  using I = IntVec<T>;
  static constexpr int w = kWidth<T>;

  struct Ket {
    I k, l;  // the two AOs of a product
    I out;   // lanes without a product
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
    const I i = I{} + first, j = I{} + second;
    const Terms<T> terms(i, j, ket.k, ket.l);
    x = select<T>(ket.out | before, Vec<T>{}, x);
    if (same >= 0 && terms.pairs[0][0][same] < terms.pairs[0][1][same]) x[same] = 0;
    const I equal = (ket.k == ket.l) | (ket.k == i) | (ket.k == j) | (ket.l == i) | (ket.l == j);
    const bool repeats = first == second || any<T>(equal);
#pragma GCC unroll 3
    for (int term = 0; term < (exchange == T(0) ? 1 : 3); ++term) {
      const Vec<T> value = (term ? exchange : coulomb) * x;
      add_each<T>(half, terms.at[term], repeats ? value * terms.factor(term) : value);
    }
  }
};

// half[P (P + 1) / 2]; one pass for each interaction.
template <class T>
void supermatrix(const SupermatrixProblem<T>& problem, T* half) {
  std::fill_n(half, problem.elements, T(0));
  const EriBlocks<T> blocks(problem.eri);
  for (const auto& pass : problem.passes) {
    HalfMatrix<T> taker(problem.aos, pass.coulomb, pass.exchange, half);
    blocks.compute(pass.of, taker);
  }
}

}  // namespace pyscf_ipu::ISA
