// Derivatives of the electron repulsion energy by the Hermite data of all shell pairs: the codelet
// "eri_gradient".
//
// The walk over bra shell pairs and groups of kets is that of "eri".  The two-particle density of one
// bra shell pair and its kets is made from the density matrix and contracted with the kets' E; then
// each primitive quartet adds to three sums: by the bra's E, by the kets' E (the bra-contracted R, as
// in "eri"), and by the distance of the centres (R of one order higher).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gradients/eri_gradient_high.hpp"
#include "integrals/eri_high.hpp"
#include "integrals/eri_sides.hpp"
#include "integrals/meetings.hpp"

namespace pyscf_ipu::ISA {

// Row of (t, u, v) one degree higher along each axis.
template <int L>
struct RaisedIndex {
  std::array<std::array<int, n_hermite(L)>, 3> row{};

  constexpr RaisedIndex() {
    for_each_row(L, [this](int t, int u, int v) {
      const int h = hermite_row(t, u, v);
      row[0][h] = hermite_row(t + 1, u, v);
      row[1][h] = hermite_row(t, u + 1, v);
      row[2][h] = hermite_row(t, u, v + 1);
    });
  }
};

template <int L>
inline constexpr RaisedIndex<L> kRaised{};

// The sums of a class as kets, laid out as Side::lanes and with three vectors per KetVector.
template <class T>
struct KetSums {
  std::vector<Vec<T>> e, centre;
  const T* lanes;
  int each;

  explicit KetSums(const Side<T>& side)
      : e(side.lanes.size()), centre(3 * side.lanes.size() / (side.products * side.hermites)),
        lanes(reinterpret_cast<const T*>(side.lanes.data())), each(side.products * side.hermites) {}

  std::size_t index(const KetVector<T>& q) const { return (q.e - lanes) / (each * kWidth<T>); }
};

// The orders are kHigh where they are known at run time only.
template <class T, int LB, int LK>
struct EriGradientVertex : Hermites<LB, LK> {
  using Hermites<LB, LK>::kBra, Hermites<LB, LK>::kKet;

  const BoysFit<T>& fit;
  const EriGradientProblem<T>& problem;
  const Side<T>&bra, &ket;
  const EriGradientClass<T>&of_bra, &of_ket;
  KetSums<T>& ket_sums;
  // Two-particle density [f, f'], times the ket's E [f, h'], bra-contracted R [f, h'].
  std::vector<Vec<T>> density, weights, half;
  std::vector<Vec<T>> e_sums, centre_sums;  // of the bra: [primitives, f, h], [primitives, 3]
  std::optional<HighQuartetGradient<T>> high;

  EriGradientVertex(const BoysFit<T>& fit, const EriGradientProblem<T>& problem, int bra_class,
                    int ket_class, const std::vector<Side<T>>& sides,
                    std::vector<KetSums<T>>& sums)
      : Hermites<LB, LK>(sides[bra_class].order, sides[ket_class].order), fit(fit),
        problem(problem), bra(sides[bra_class]), ket(sides[ket_class]),
        of_bra(problem.gradients[bra_class]), of_ket(problem.gradients[ket_class]),
        ket_sums(sums[ket_class]), density(bra.products * ket.products),
        weights(bra.products * kKet), half(bra.products * kKet) {
    if constexpr (LB == kHigh) high.emplace(bra, ket);
  }

  void begin(const ShellPair<T>& pair) {
    e_sums.assign(pair.primitives.size() * bra.products * kBra, Vec<T>{});
    centre_sums.assign(pair.primitives.size() * 3, Vec<T>{});
  }

  // One bra shell pair and a group of kets, from lane `first` on; `own` is the bra's own lane.
  void operator()(const ShellPair<T>& pair, const PairStrip<T>& kets, const KetGroup<T>& group,
                  int first, int own) {
    two_particle_density(pair, kets, group, first, own);
    for (const auto& q : group.primitives) {
      if (pair.primitives.front().size * q.size < kNegligible<T>) continue;
      contract_density(q);
      std::fill(half.begin(), half.end(), Vec<T>{});
      Vec<T> force[3]{};
      int index = 0;
      for (const auto& p : pair.primitives) {
        if (p.size * q.size < kNegligible<T>) break;
        quartet(p, q, index++, force);
      }
      add_to_kets(q, force);
    }
  }

  // Writes the sums of a bra shell pair.
  void end(const ShellPair<T>& pair, const T* base) {
    const int each = bra.products * kBra;
    for (std::size_t i = 0; i < pair.primitives.size(); ++i) {
      const std::int64_t at = (pair.primitives[i].e - base) / each;
      for (int k = 0; k < each; ++k) of_bra.e[at * each + k] += sum<T>(e_sums[i * each + k]);
      for (int d = 0; d < 3; ++d) of_bra.centre[3 * at + d] += sum<T>(centre_sums[3 * i + d]);
    }
  }

 private:
  // d energy / d (ab|cd) of every product; a quartet stands for its mirror image unless it is one.
  void two_particle_density(const ShellPair<T>& pair, const PairStrip<T>& kets,
                            const KetGroup<T>& group, int first, int own) {
    T* out = reinterpret_cast<T*>(density.data());
    std::fill(density.begin(), density.end(), Vec<T>{});
    const std::int64_t n = problem.n_ao;
    const T* d = problem.density;
    const T exchange = T(0.125) * problem.exchange;
    for (int lane = first; lane < group.lanes; ++lane) {
      const std::int32_t* columns = problem.products + 3 * kets.pairs[group.first + lane].row;
      for (int g = 0; g < ket.products; ++g) {
        const T* dk = d + columns[3 * g] * n;
        const T* dl = d + columns[3 * g + 1] * n;
        const T coulomb = T(0.5) * problem.coulomb * dk[columns[3 * g + 1]];
        const T times = T(lane == own ? 1 : 2) * T(columns[3 * g + 2]);
        for (int f = 0; f < bra.products; ++f) {
          const std::int32_t* row = problem.products + 3 * (pair.row + f);
          const std::int64_t i = row[0], j = row[1];
          const T value = coulomb * d[i * n + j] - exchange * (dk[i] * dl[j] + dl[i] * dk[j]);
          out[(f * ket.products + g) * kWidth<T> + lane] = times * T(row[2]) * value;
        }
      }
    }
  }

  void contract_density(const KetVector<T>& q) {
    std::fill(weights.begin(), weights.end(), Vec<T>{});
    for (int k = 0; k < kKet; ++k)
      for (const int g : ket.occupied[k]) {
        const Vec<T> e = load<T>(q.e + (g * kKet + k) * kWidth<T>);
        for (int f = 0; f < bra.products; ++f)
          weights[f * kKet + k] += density[f * ket.products + g] * e;
      }
  }

  void quartet(const Primitive<T>& p, const KetVector<T>& q, int index, Vec<T> (&force)[3]) {
    const auto [inverse_root, alpha, d] = Meeting<T>(p, q);
    if constexpr (LB == kHigh) {
      high->integrals(fit, problem.eri.of, alpha, inverse_root, d);
      high->contract(p.e, weights.data(), half.data(), e_sums.data() + index * bra.products * kBra);
      high->add_force(p.e, weights.data(), centre_sums.data() + 3 * index, force);
    } else {
      Vec<T> r[n_hermite(LB + LK + 1)];
      hermite_coulomb<T, LB + LK + 1>(fit, problem.eri.of, alpha, inverse_root, d[0], d[1], d[2],
                                      r);
      quartet_written_out(p, r, index, force);
    }
  }

  __attribute__((always_inline)) void quartet_written_out(const Primitive<T>& p, const Vec<T>* r,
                                                          int index, Vec<T> (&force)[3]) {
    constexpr int kOrder = LB + LK;
    constexpr int kStep = kKet < 10 ? kKet : 10;  // sums that fit into registers
    constexpr auto& row = kProduct<LB, LK>.row;
    Vec<T> charge[n_hermite(kOrder)]{};  // the quartet's energy is the sum of charge times r
    for (int f = 0; f < bra.products; ++f) {
      const unsigned long long occupied = bra.occupied_by[f];
      const T* e = p.e + f * kBra;
      Vec<T>* to = e_sums.data() + (index * bra.products + f) * kBra;
#pragma GCC unroll 4
      for (int first = 0; first < kKet; first += kStep) {
        Vec<T> sum[kStep], weight[kStep];
#pragma GCC unroll 10
        for (int k = 0; k < kStep && first + k < kKet; ++k) {
          sum[k] = half[f * kKet + first + k];
          weight[k] = weights[f * kKet + first + k];
        }
        const auto row_of_bra = [&](int h) __attribute__((always_inline)) {
          if (!(occupied >> h & 1)) return;
          Vec<T> by_e{};
#pragma GCC unroll 10
          for (int k = 0; k < kStep && first + k < kKet; ++k) {
            const int m = row[h][first + k];
            sum[k] += e[h] * r[m];
            by_e += weight[k] * r[m];
            charge[m] += e[h] * weight[k];
          }
          to[h] += by_e;
        };
        // Written out, rows are known to the compiler; d shells have too many of them.
        if constexpr (kBra <= 10) {
#pragma GCC unroll 10
          for (int h = 0; h < kBra; ++h) row_of_bra(h);
        } else {
          for (int h = 0; h < kBra; ++h) row_of_bra(h);
        }
#pragma GCC unroll 10
        for (int k = 0; k < kStep && first + k < kKet; ++k) half[f * kKet + first + k] = sum[k];
      }
    }
    for (int i = 0; i < 3; ++i) {
      Vec<T> along{};
      for (int m = 0; m < n_hermite(kOrder); ++m) along += charge[m] * r[kRaised<kOrder>.row[i][m]];
      centre_sums[3 * index + i] += along;
      force[i] += along;
    }
  }

  void add_to_kets(const KetVector<T>& q, const Vec<T> (&force)[3]) {
    const std::size_t at = ket_sums.index(q);
    for (int i = 0; i < 3; ++i) ket_sums.centre[3 * at + i] -= force[i];
    Vec<T>* e = ket_sums.e.data() + at * ket_sums.each;
    for (int k = 0; k < kKet; ++k)
      for (const int g : ket.occupied[k]) {
        Vec<T> total{};
        for (int f = 0; f < bra.products; ++f)
          total += density[f * ket.products + g] * half[f * kKet + k];
        e[g * kKet + k] += total;
      }
  }
};

template <class T, int LB, int LK>
void eri_gradient_block(const BoysFit<T>* fits, const EriGradientProblem<T>& problem,
                        const std::int32_t* block, const std::vector<Side<T>>& sides,
                        std::vector<KetSums<T>>& sums) {
  const auto& fit = fits[sides[block[0]].order + sides[block[1]].order + 1];
  EriGradientVertex<T, LB, LK> vertex(fit, problem, block[0], block[1], sides, sums);
  const auto& bras = sides[block[0]].strips[block[2]].pairs;
  const auto& kets = sides[block[1]].strips[block[3]];
  const bool square = block[0] == block[1] && block[2] == block[3];
  for (int b = 0; b < static_cast<int>(bras.size()); ++b) {
    vertex.begin(bras[b]);
    for (const auto& group : kets.groups) {
      // Of a square block one triangle: lanes before b were done when they were the bra.
      const int skip = square ? std::max(0, b - group.first) : 0;
      if (skip >= group.lanes) continue;
      vertex(bras[b], kets, group, skip, square ? b - group.first : -1);
    }
    vertex.end(bras[b], problem.eri.classes[block[0]].e);
  }
}

template <class T, int LB, int LK>
void eri_gradient_ket(int order, const BoysFit<T>* fits, const EriGradientProblem<T>& problem,
                      const std::int32_t* block, const std::vector<Side<T>>& sides,
                      std::vector<KetSums<T>>& sums) {
  if (order == LK)
    eri_gradient_block<T, LB, LK>(fits, problem, block, sides, sums);
  else if constexpr (LK > LB)
    eri_gradient_ket<T, LB, LK - 1>(order, fits, problem, block, sides, sums);
}

template <class T, int LB>
void eri_gradient_bra(const BoysFit<T>* fits, const EriGradientProblem<T>& problem,
                      const std::int32_t* block, const std::vector<Side<T>>& sides,
                      std::vector<KetSums<T>>& sums) {
  if (sides[block[0]].order == LB)
    eri_gradient_ket<T, LB, kWrittenOut>(sides[block[1]].order, fits, problem, block, sides, sums);
  else if constexpr (LB > 0)
    eri_gradient_bra<T, LB - 1>(fits, problem, block, sides, sums);
}

// The pattern of E that is zero by symmetry alone: an E that a geometry makes zero has a derivative.
template <class T>
void occupy(Side<T>& side, const std::int32_t* pattern) {
  side.occupied.assign(side.hermites, {});
  side.occupied_by.assign(side.products, 0);
  for (int f = 0; f < side.products; ++f)
    for (int h = 0; h < side.hermites; ++h)
      if (pattern[f * side.hermites + h]) {
        side.occupied[h].push_back(f);
        if (h < 64) side.occupied_by[f] |= 1ULL << h;
      }
}

// The sums over lanes of a class as kets, added to the result; E gets back the ket's sign.
template <class T>
void add_lanes(const Side<T>& side, const KetSums<T>& sums, const EriClass<T>& c,
               const EriGradientClass<T>& to) {
  const int each = sums.each;
  for (const auto& strip : side.strips)
    for (const auto& group : strip.groups)
      for (std::size_t k = 0; k < group.primitives.size(); ++k) {
        const std::size_t from = sums.index(group.primitives[k]);
        for (int lane = 0; lane < group.lanes; ++lane) {
          const auto& found = strip.pairs[group.first + lane].primitives;
          if (k >= found.size()) continue;
          const std::int64_t at = (found[k].e - c.e) / each;
          for (int d = 0; d < 3; ++d) to.centre[3 * at + d] += sums.centre[3 * from + d][lane];
          for (int f = 0; f < side.products; ++f)
            for (int d = 0, h = 0; d <= side.order; ++d)
              for (const int end = n_hermite(d); h < end; ++h) {
                const T x = sums.e[from * each + f * side.hermites + h][lane];
                to.e[at * each + f * side.hermites + h] += d % 2 ? -x : x;
              }
        }
      }
}

template <class T>
void eri_gradient(const EriGradientProblem<T>& problem) {
  const auto& classes = problem.eri.classes;
  const int highest = highest_of(classes);
  const Sizes<T> sizes(classes, highest);
  std::vector<Side<T>> sides = sides_of(classes, sizes, sizes.largest);
  std::vector<KetSums<T>> sums;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto& to = problem.gradients[i];
    const std::int64_t count = sizes.of[i].size(), each = sides[i].products * sides[i].hermites;
    std::fill_n(to.e, count * each, T(0));
    std::fill_n(to.centre, 3 * count, T(0));
    occupy(sides[i], to.pattern);
    sums.emplace_back(sides[i]);
  }
  const auto fits = read_fits<T>(problem.eri.boys, 2 * highest + 1);
  for (std::int64_t i = 0; i < problem.eri.n_blocks; ++i) {
    const std::int32_t* block = problem.eri.blocks + 4 * i;
    if (sides[block[1]].order > kWrittenOut)
      eri_gradient_block<T, kHigh, kHigh>(fits.data(), problem, block, sides, sums);
    else
      eri_gradient_bra<T, kWrittenOut>(fits.data(), problem, block, sides, sums);
  }
  for (std::size_t i = 0; i < classes.size(); ++i)
    add_lanes(sides[i], sums[i], classes[i], problem.gradients[i]);
}

}  // namespace pyscf_ipu::ISA
