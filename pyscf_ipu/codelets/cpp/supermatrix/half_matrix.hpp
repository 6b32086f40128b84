// Integrals straight into half of the supermatrix: the codelet "supermatrix".
//
// G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] is kept as its half L, L + L^T = G: the lower triangle,
// packed by rows, the diagonal halved.  An integral v = (ij|kl) stands in three elements:
// G[ij,kl] as Coulomb, and G[ik,jl] and G[il,jk] as exchange.  So each is added where it belongs
// as soon as it is known, and the matrix of all integrals is never stored.  Of open shells Coulomb
// and exchange stand apart, in two halves.
//
// The additions wait for memory longer than the integrals take.  So AO pairs are in the order of the
// tile plan, products of the same two shells side by side, and pairs with many products first: the
// elements of a shell quartet lie in few rows, and many of them in a cache line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

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
  const I (&pairs)[3][2];  // places of AO pairs: ij and kl, ik and jl, il and jk
  const I at[3];

  Terms(I i, I j, I k, I l, const I (&pairs)[3][2])
      : i(i), j(j), k(k), l(l), pairs(pairs),
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
    I at;    // place of the pair
    I out;   // lanes without a product
  };

  // Functions of the two shells of a pair; none: it does not exist, or pairs of a group differ.
  struct Functions {
    int first = 0, second = 0;
    bool operator==(const Functions& other) const {
      return first == other.first && second == other.second;
    }
  };

  const std::int32_t* const aos;     // [rows, 2]: the two AOs of a product; -1 in a row without one
  const std::int32_t* const places;  // [n, n]: of AO pairs in G
  const std::int32_t n_aos;
  const T coulomb, exchange;  // factors of the two kinds of terms
  T *const half, *const exchanged;
  std::vector<Ket> strip;         // [group, product] of the kets at hand
  std::vector<Functions> shells;  // of every group of them
  std::vector<I> ik, il, jk, jl;  // places of pairs between a bra and a ket, [AO of one, of the other]
  I before;                       // lanes that are not wanted
  int same;                       // the lane in which the ket is the bra, or -1

  HalfMatrix(const SupermatrixProblem<T>& problem, T coulomb, T fraction, T* half)
      : aos(problem.aos), places(problem.places), n_aos(problem.n_aos), coulomb(coulomb),
        exchange(T(-0.25) * fraction), half(half),
        exchanged(problem.apart ? half + problem.elements : half) {}

  void open(const PairStrip<T>& kets, int products) override {
    strip.assign(kets.groups.size() * products, Ket{});
    shells.assign(kets.groups.size(), Functions{});
    for (std::size_t n = 0; n < kets.groups.size(); ++n)
      for (int lane = 0; lane < w; ++lane) {
        const auto& group = kets.groups[n];
        const std::int64_t row = kets.pairs[group.first + std::min(lane, group.lanes - 1)].row;
        const Functions found = functions_of(row, products);
        if (lane == 0) shells[n] = found;
        else if (!(found == shells[n])) shells[n] = Functions{};
        for (int g = 0; g < products; ++g) {
          Ket& ket = strip[n * products + g];
          const bool out = lane >= group.lanes || is_out(row, g);
          const std::int32_t k = out ? 0 : aos[2 * (row + g)], l = out ? 0 : aos[2 * (row + g) + 1];
          ket.out[lane] = -int(out);
          ket.k[lane] = k, ket.l[lane] = l;
          ket.at[lane] = places[k * n_aos + l];
        }
      }
  }

  void take(const std::vector<Vec<T>>& result, const ShellPair<T>& bra, int products,
            const PairStrip<T>& kets, int n, int first_lane, int ket_products) override {
    const auto& group = kets.groups[n];
    const std::int64_t ket_row = kets.pairs[group.first + first_lane].row;
    for (int lane = 0; lane < w; ++lane) before[lane] = -int(lane < first_lane);
    same = ket_row == bra.row ? first_lane : -1;
    const Functions of_bra = functions_of(bra.row, products), of_ket = shells[n];
    const Ket* ket = strip.data() + n * ket_products;
    if (of_ket.first) find_places(bra.row, of_bra, ket[0], of_ket);
    for (int f = 0; f < of_bra.first * of_bra.second; ++f) {
      if (is_out(bra.row, f)) continue;
      const std::int32_t* ij = aos + 2 * (bra.row + f);
      const Vec<T>* x = result.data() + f * ket_products;
      if (of_ket.first)
        add_alike(ij, f / of_bra.second, f % of_bra.second, ket, of_ket, x);
      else
        add_any(ij, ket, ket_products, x);
    }
  }

 private:
  // Whether a product does not exist, or stands in the same shell pair a second time.
  bool is_out(std::int64_t row, int product) const {
    const std::int32_t *first = aos + 2 * row, *at = first + 2 * product;
    return at[0] < 0 || (first[0] == first[1] && at[0] < at[1]);
  }

  // Of the pair whose first product has this row.
  Functions functions_of(std::int64_t row, int products) const {
    const std::int32_t* at = aos + 2 * row;
    if (at[0] < 0) return {};
    int all = 1, second = 1;
    while (all < products && at[2 * all] >= 0) ++all;
    while (second < all && at[2 * second] == at[0]) ++second;
    return {all / second, second};
  }

  // ik, il, jk and jl of a bra and a group of kets, from their first products.
  void find_places(std::int64_t row, Functions bra, const Ket& ket, Functions of_ket) {
    const std::int32_t i = aos[2 * row], j = aos[2 * row + 1];
    const auto find = [&](std::vector<I>& to, std::int32_t first, int rows, I other, int columns) {
      to.resize(rows * columns);
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b)
          to[a * columns + b] = gather<T>(places, other + ((first + a) * n_aos + b));
    };
    find(ik, i, bra.first, ket.k, of_ket.first);
    find(il, i, bra.first, ket.l, of_ket.second);
    find(jk, j, bra.second, ket.k, of_ket.first);
    find(jl, j, bra.second, ket.l, of_ket.second);
  }

  // Integrals of one product of a bra with kets whose shells have as many functions in every lane.
  void add_alike(const std::int32_t* ij, int a, int b, const Ket* ket, Functions of_ket,
                 const Vec<T>* x) {
    const I at = I{} + places[ij[0] * n_aos + ij[1]];
    const I *from_i = ik.data() + a * of_ket.first, *i_to = il.data() + a * of_ket.second,
            *from_j = jk.data() + b * of_ket.first, *j_to = jl.data() + b * of_ket.second;
    for (int c = 0, g = 0; c < of_ket.first; ++c)
      for (int d = 0; d < of_ket.second; ++d, ++g)
        add(ij[0], ij[1], ket[g], {{at, ket[g].at}, {from_i[c], j_to[d]}, {i_to[d], from_j[c]}},
            x[g]);
  }

  // The same with any kets, as general contractions have beside others of their class.
  void add_any(const std::int32_t* ij, const Ket* ket, int products, const Vec<T>* x) {
    const std::int32_t i = ij[0] * n_aos, j = ij[1] * n_aos;
    const I at = I{} + places[i + ij[1]];
    const auto to = [&](I other, std::int32_t row) { return gather<T>(places, other + row); };
    for (int g = 0; g < products; ++g) {
      const I k = ket[g].k, l = ket[g].l;
      add(ij[0], ij[1], ket[g],
          {{at, ket[g].at}, {to(k, i), to(l, j)}, {to(l, i), to(k, j)}}, x[g]);
    }
  }

  __attribute__((always_inline)) void add(std::int32_t first, std::int32_t second, const Ket& ket,
                                          const I (&pairs)[3][2], Vec<T> x) {
    const I i = I{} + first, j = I{} + second;
    const Terms<T> terms(i, j, ket.k, ket.l, pairs);
    x = select<T>(ket.out | before, Vec<T>{}, x);
    if (same >= 0 && terms.pairs[0][0][same] < terms.pairs[0][1][same]) x[same] = 0;
    const I equal = (ket.k == ket.l) | (ket.k == i) | (ket.k == j) | (ket.l == i) | (ket.l == j);
    const bool repeats = first == second || any<T>(equal);
#pragma GCC unroll 3
    for (int term = 0; term < (exchange == T(0) ? 1 : 3); ++term) {
      const Vec<T> value = (term ? exchange : coulomb) * x;
      add_each<T>(term ? exchanged : half, terms.at[term], repeats ? value * terms.factor(term) : value);
    }
  }
};

// Asks for large pages: additions here and there find the addresses of few of them at once.
template <class T>
void on_large_pages(T* first, std::int64_t count) {
#ifdef __linux__
  constexpr std::uintptr_t size = 1 << 21;
  const auto from = (reinterpret_cast<std::uintptr_t>(first) + size - 1) / size * size;
  const auto to = reinterpret_cast<std::uintptr_t>(first + count) / size * size;
  // Without them all is well, too: no need to look at the answer.
  if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#else
  (void)first, (void)count;
#endif
}

// half[P (P + 1) / 2], or two of them; one pass for each interaction.
template <class T>
void supermatrix(const SupermatrixProblem<T>& problem, T* half) {
  const std::int64_t all = (problem.apart ? 2 : 1) * problem.elements;
  on_large_pages(half, all);
  std::fill_n(half, all, T(0));
  const EriBlocks<T> blocks(problem.eri);
  for (const auto& pass : problem.passes) {
    HalfMatrix<T> taker(problem, pass.coulomb, pass.exchange, half);
    blocks.compute(pass.of, taker);
  }
}

}  // namespace pyscf_ipu::ISA
