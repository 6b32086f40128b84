// Electron repulsion integrals (ab|cd) of all AO pairs: the codelet "eri".
//
// The work list is the tile plan's: bra strip against ket strip.  A vertex takes one bra shell pair
// against kWidth ket shell pairs, one per vector lane.  For each ket primitive the bra is
// contracted first, [f, h'], so that the ket's contraction is paid once per bra shell pair.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "integrals/eri_high.hpp"
#include "integrals/eri_sides.hpp"
#include "integrals/meetings.hpp"

namespace pyscf_ipu::ISA {

// The orders are kHigh where they are known at run time only.
template <class T, int LB, int LK>
struct EriVertex : Hermites<LB, LK> {
  using Hermites<LB, LK>::kBra, Hermites<LB, LK>::kKet;

  const BoysFit<T>& fit;
  const Interaction<T>& of;
  const Side<T>&bra, &ket;
  std::vector<Vec<T>> half, result;
  std::optional<HighQuartet<T>> high;

  EriVertex(const BoysFit<T>& fit, const Interaction<T>& of, const Side<T>& bra,
            const Side<T>& ket)
      : Hermites<LB, LK>(bra.order, ket.order), fit(fit), of(of), bra(bra), ket(ket),
        half(bra.products * kKet), result(bra.products * ket.products) {
    if constexpr (LB == kHigh) high.emplace(bra, ket, 0);
  }

  // result[f, f'] of one bra shell pair and a group of kets.
  void operator()(const ShellPair<T>& pair, const KetGroup<T>& group) {
    std::fill(result.begin(), result.end(), Vec<T>{});
    each_meeting(
        pair, group, [&] { std::fill(half.begin(), half.end(), Vec<T>{}); },
        [&](const auto& p, const auto& q) { contract_bra(p, q); },
        [&](const auto& q) { contract_ket(q); });
  }

 private:
  void contract_bra(const Primitive<T>& p, const KetVector<T>& q) {
    const auto [inverse_root, alpha, d] = Meeting<T>(p, q);
    if constexpr (LB == kHigh) {
      high->integrals(fit, of, alpha, inverse_root, d);
      high->contract(p.e, half.data());
    } else {
      Vec<T> r[n_hermite(LB + LK)];
      hermite_coulomb<T, LB + LK>(fit, of, alpha, inverse_root, d[0], d[1], d[2], r);
      contract_written_out(p, r);
    }
  }

  __attribute__((always_inline)) void contract_written_out(const Primitive<T>& p,
                                                           const Vec<T>* r) {
    constexpr auto& row = kProduct<LB, LK>.row;
    constexpr int kStep = kKet < 10 ? kKet : 10;  // sums that fit into registers
    // Product by product: the sums over h stay in registers.
    for (int f = 0; f < bra.products; ++f) {
      const unsigned long long occupied = bra.occupied_by[f];
      const T* e = p.e + f * kBra;
      Vec<T>* to = half.data() + f * kKet;
#pragma GCC unroll 4
      for (int first = 0; first < kKet; first += kStep) {
        Vec<T> sum[kStep];
#pragma GCC unroll 10
        for (int k = 0; k < kStep && first + k < kKet; ++k) sum[k] = to[first + k];
#pragma GCC unroll 35
        for (int h = 0; h < kBra; ++h) {
          if (!(occupied >> h & 1)) continue;
#pragma GCC unroll 10
          for (int k = 0; k < kStep && first + k < kKet; ++k)
            sum[k] += e[h] * r[row[h][first + k]];
        }
#pragma GCC unroll 10
        for (int k = 0; k < kStep && first + k < kKet; ++k) to[first + k] = sum[k];
      }
    }
  }

  void contract_ket(const KetVector<T>& q) {
    for (int k = 0; k < kKet; ++k)
      for (const int g : ket.occupied[k]) {
        const Vec<T> e = load<T>(q.e + (g * kKet + k) * kWidth<T>);
        for (int f = 0; f < bra.products; ++f)
          result[f * ket.products + g] += half[f * kKet + k] * e;
      }
  }
};

// What becomes of the integrals.
template <class T>
struct Taker {
  // A strip of kets begins; each has `products` products.
  virtual void open(const PairStrip<T>& kets, int products) { (void)kets, (void)products; }
  // The integrals [products, ket_products, lanes] of a bra and the n-th group of kets, from
  // `first_lane` on.
  virtual void take(const std::vector<Vec<T>>& result, const ShellPair<T>& bra, int products,
                    const PairStrip<T>& kets, int n, int first_lane, int ket_products) = 0;
};

// Both triangles of the matrix of all integrals.
template <class T>
struct WholeMatrix : Taker<T> {
  const std::int64_t rows;
  T* const matrix;
  WholeMatrix(std::int64_t rows, T* matrix) : rows(rows), matrix(matrix) {}

  void take(const std::vector<Vec<T>>& result, const ShellPair<T>& bra, int products,
            const PairStrip<T>& kets, int n, int first_lane, int ket_products) override {
    const auto& group = kets.groups[n];
    const T* from = reinterpret_cast<const T*>(result.data());
    for (int lane = first_lane; lane < group.lanes; ++lane) {
      const std::int64_t column = kets.pairs[group.first + lane].row;
      for (int f = 0; f < products; ++f)
        for (int g = 0; g < ket_products; ++g) {
          const T x = from[(f * ket_products + g) * kWidth<T> + lane];
          matrix[(bra.row + f) * rows + column + g] = x;
          matrix[(column + g) * rows + bra.row + f] = x;
        }
    }
  }
};

template <class T, int LB, int LK>
void eri_block(const BoysFit<T>& fit, const Interaction<T>& of, const Side<T>& bra,
               const Side<T>& ket, int bra_strip, int ket_strip, Taker<T>& taker) {
  EriVertex<T, LB, LK> vertex(fit, of, bra, ket);
  const auto& kets = ket.strips[ket_strip];
  const auto& bras = bra.strips[bra_strip].pairs;
  const bool square = &bra == &ket && bra_strip == ket_strip;
  taker.open(kets, ket.products);
  for (int b = 0; b < static_cast<int>(bras.size()); ++b)
    for (int n = 0; n < static_cast<int>(kets.groups.size()); ++n) {
      const auto& group = kets.groups[n];
      // A square block is symmetric: lanes before b were done when they were the bra.
      const int skip = square ? std::max(0, b - group.first) : 0;
      if (skip >= group.lanes) continue;
      vertex(bras[b], group);
      taker.take(vertex.result, bras[b], bra.products, kets, n, skip, ket.products);
    }
}

template <class T, int LB, int LK>
void eri_dispatch_ket(int order, const BoysFit<T>* fits, const Interaction<T>& of,
                      const Side<T>& bra, const Side<T>& ket, int bra_strip, int ket_strip,
                      Taker<T>& taker) {
  if (order == LK)
    eri_block<T, LB, LK>(fits[LB + LK], of, bra, ket, bra_strip, ket_strip, taker);
  else if constexpr (LK > LB)
    eri_dispatch_ket<T, LB, LK - 1>(order, fits, of, bra, ket, bra_strip, ket_strip, taker);
}

template <class T, int LB>
void eri_dispatch(const BoysFit<T>* fits, const Interaction<T>& of, const Side<T>& bra,
                  const Side<T>& ket, int bra_strip, int ket_strip, Taker<T>& taker) {
  if (bra.order == LB)
    eri_dispatch_ket<T, LB, kWrittenOut>(ket.order, fits, of, bra, ket, bra_strip, ket_strip,
                                         taker);
  else if constexpr (LB > 0)
    eri_dispatch<T, LB - 1>(fits, of, bra, ket, bra_strip, ket_strip, taker);
}

// All blocks of the plan, for one interaction after another.
template <class T>
struct EriBlocks {
  const EriProblem<T>& problem;
  const int highest;
  const Sizes<T> sizes;
  const std::vector<Side<T>> sides;
  const std::vector<BoysFit<T>> fits;

  explicit EriBlocks(const EriProblem<T>& problem)
      : problem(problem), highest(highest_of(problem.classes)), sizes(problem.classes, highest),
        sides(sides_of(problem.classes, sizes, sizes.largest)),
        fits(read_fits<T>(problem.boys, 2 * highest)) {}

  void compute(const Interaction<T>& of, Taker<T>& taker) const {
    for (std::int64_t i = 0; i < problem.n_blocks; ++i) {
      const std::int32_t* b = problem.blocks + 4 * i;
      // Classes are sorted by order, and a block's bra class is not behind its ket class.
      const Side<T>&bra = sides[b[0]], &ket = sides[b[1]];
      if (ket.order > kWrittenOut)
        eri_block<T, kHigh, kHigh>(fits[bra.order + ket.order], of, bra, ket, b[2], b[3], taker);
      else
        eri_dispatch<T, kWrittenOut>(fits.data(), of, bra, ket, b[2], b[3], taker);
    }
  }
};

template <class T>
void eri(const EriProblem<T>& problem, T* matrix) {
  std::fill_n(matrix, problem.rows * problem.rows, T(0));
  WholeMatrix<T> taker(problem.rows, matrix);
  EriBlocks<T>(problem).compute(problem.of, taker);
}

}  // namespace pyscf_ipu::ISA
