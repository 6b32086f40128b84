// Derivatives of the electron repulsion energy by the Hermite data of all shell pairs: the codelet
// "eri_gradient".
//
// The walk over bra shell pairs and groups of kets is that of "eri".  The two-particle density of one
// bra shell pair and its kets is made from the density matrix, lane by lane, and contracted with the
// kets' E; then each primitive quartet adds to three sums: by the bra's E, by the kets' E (the
// bra-contracted R, as in "eri"), and by the distance of the centres (the derivatives of R).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gemm.hpp"
#include "gradients/repulsion/eri_gradient_high.hpp"
#include "gradients/repulsion/eri_gradient_sides.hpp"
#include "integrals/eri_high.hpp"
#include "integrals/eri_sides.hpp"
#include "integrals/meetings.hpp"

namespace pyscf_ipu::ISA {

// The orders are kHigh where they are known at run time only; kProducts are the bra's, if their
// pattern is usual, or 0.
template <class T, int LB, int LK, int kProducts>
struct EriGradientVertex : Hermites<LB, LK> {
  using Hermites<LB, LK>::kBra, Hermites<LB, LK>::kKet;

  const BoysFit<T>& fit;
  const EriGradientProblem<T>& problem;
  const Side<T>&bra, &ket;
  const EriGradientClass<T>&of_bra, &of_ket;
  KetSums<T>& ket_sums;
  const std::vector<std::vector<int>> ket_hermites;
  // Elements of the density matrix between the bra's AOs and the kets' slots; the bra's AOs, and
  // which of them a product has.
  std::vector<T> between;
  std::vector<std::int32_t> bra_aos;
  std::vector<int> bra_first, bra_second;
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
        ket_sums(sums[ket_class]), ket_hermites(hermites_of(ket)), density(bra.products * ket.products),
        weights(bra.products * kKet), half(bra.products * kKet) {
    if constexpr (LB == kHigh) high.emplace(bra, ket);
  }

  void begin(const ShellPair<T>& pair) {
    e_sums.assign(pair.primitives.size() * bra.products * kBra, Vec<T>{});
    centre_sums.assign(pair.primitives.size() * 3, Vec<T>{});
    bra_aos.clear(), bra_first.clear(), bra_second.clear();
    const auto place = [this](std::int32_t ao) {
      const auto at = std::find(bra_aos.begin(), bra_aos.end(), ao);
      const int found = int(at - bra_aos.begin());
      if (at == bra_aos.end()) bra_aos.push_back(ao);
      return found;
    };
    for (int f = 0; f < bra.products; ++f) {
      bra_first.push_back(place(problem.products[3 * (pair.row + f)]));
      bra_second.push_back(place(problem.products[3 * (pair.row + f) + 1]));
    }
  }

  // One bra shell pair and a group of kets, from lane `first` on; `own` is the bra's own lane.
  void operator()(const ShellPair<T>& pair, const KetGroup<T>& group,
                  const GroupProducts<T>& products, int first, int own) {
    two_particle_density(pair, products, first, own);
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
  void two_particle_density(const ShellPair<T>& pair, const GroupProducts<T>& kets, int first,
                            int own) {
    const int slots = kets.slots();
    const std::int64_t n = problem.n_ao;
    between.resize(bra_aos.size() * slots * kWidth<T>);
    T* to = between.data();
    for (const std::int32_t ao : bra_aos) {
      const T* row = problem.density + ao * n;
      const std::int32_t* other = kets.aos.data();
      for (int slot = 0; slot < slots; ++slot, to += kWidth<T>, other += kWidth<T>)
#pragma GCC unroll 16
        for (int lane = 0; lane < kWidth<T>; ++lane) to[lane] = row[other[lane]];
    }
    Vec<T> mirror{};
    for (int lane = first; lane < kWidth<T>; ++lane) mirror[lane] = lane == own ? T(1) : T(2);
    const auto at = [&](int ao, int slot) {
      return load(between.data() + (ao * slots + slot) * kWidth<T>);
    };
    const T exchange = T(0.125) * problem.exchange;
    for (int g = 0; g < ket.products; ++g) {
      const int k = kets.first[g], l = kets.second[g];
      const std::int32_t *second = kets.aos.data() + l * kWidth<T>,
                         *first = kets.aos.data() + k * kWidth<T>;
      Vec<T> ket_density;
      for (int lane = 0; lane < kWidth<T>; ++lane)
        ket_density[lane] = problem.density[first[lane] * n + second[lane]];
      const Vec<T> times = mirror * kets.times[g];
      for (int f = 0; f < bra.products; ++f) {
        const int i = bra_first[f], j = bra_second[f];
        const T coulomb = T(0.5) * problem.coulomb *
                          problem.density[bra_aos[i] * n + bra_aos[j]];
        const Vec<T> value = coulomb * ket_density -
                             exchange * (at(i, k) * at(j, l) + at(i, l) * at(j, k));
        density[f * ket.products + g] =
            (times * T(problem.products[3 * (pair.row + f) + 2])) * value;
      }
    }
  }

  // weights = density times E of the kets.
  void contract_density(const KetVector<T>& q) {
    for (int k = 0; k < kKet; ++k)
      for (int first = 0; first < bra.products; first += 8)
        by_number<8>(bra.products - first, [&](auto count) {
          Vec<T> sums[count]{};
          for (const int g : ket.occupied[k]) {
            const Vec<T> e = load<T>(q.e + (g * kKet + k) * kWidth<T>);
#pragma GCC unroll 8
            for (int f = 0; f < count; ++f) sums[f] += density[(first + f) * ket.products + g] * e;
          }
#pragma GCC unroll 8
          for (int f = 0; f < count; ++f) weights[(first + f) * kKet + k] = sums[f];
        });
  }

  void quartet(const Primitive<T>& p, const KetVector<T>& q, int index, Vec<T> (&force)[3]) {
    const auto [inverse_root, alpha, d] = Meeting<T>(p, q);
    if constexpr (LB == kHigh) {
      high->integrals(fit, problem.eri.of, alpha, inverse_root, d);
      high->contract(p.e, weights.data(), half.data(), e_sums.data() + index * bra.products * kBra);
      high->add_force(p.e, weights.data(), centre_sums.data() + 3 * index, force);
    } else {
      Vec<T> r[n_hermite(LB + LK)], slope[n_hermite(LB + LK)];
      hermite_coulomb_slope<T, LB + LK>(fit, problem.eri.of, alpha, inverse_root, d, r, slope);
      contract(p, r, index);
      if constexpr (kProducts > 0)
        add_usual_force(p, slope, d, index, force);
      else
        add_force(p, slope, d, index, force);
    }
  }

  static constexpr int kStep = kKet < 10 ? kKet : 10;  // sums that fit into registers

  // half += E r, and the sums by E += r weights.
  __attribute__((always_inline)) void contract(const Primitive<T>& p, const Vec<T>* r, int index) {
    Vec<T>* to = e_sums.data() + index * bra.products * kBra;
    if constexpr (kProducts > 0)
      written_out<kProducts>([&](auto f) __attribute__((always_inline)) {
        product<usual_pattern(f)>(f, p.e + f * kBra, r, 0, to + f * kBra);
      });
    else
      for (int f = 0; f < bra.products; ++f)
        product<0>(f, p.e + f * kBra, r, bra.occupied_by[f], to + f * kBra);
  }

  // One product of the bra; which E it has is known to the compiler if `kOccupied` is not 0.
  template <unsigned long long kOccupied>
  __attribute__((always_inline)) void product(int f, const T* e, const Vec<T>* r,
                                              unsigned long long occupied, Vec<T>* to) {
    constexpr auto& row = kProduct<LB, LK>.row;
    written_out<(kKet + kStep - 1) / kStep>([&](auto step) __attribute__((always_inline)) {
      constexpr int first = step * kStep, count = kKet - first < kStep ? kKet - first : kStep;
      Vec<T> sum[count], weight[count];
#pragma GCC unroll 10
      for (int k = 0; k < count; ++k) {
        sum[k] = half[f * kKet + first + k];
        weight[k] = weights[f * kKet + first + k];
      }
      const auto row_of_bra = [&](const auto h) __attribute__((always_inline)) {
        Vec<T> by_e[2]{};
#pragma GCC unroll 10
        for (int k = 0; k < count; ++k) {
          const Vec<T> value = r[row[h][first + k]];
          sum[k] += e[h] * value;
          by_e[k % 2] += weight[k] * value;
        }
        to[h] += by_e[0] + by_e[1];
      };
      // Written out, rows are known to the compiler; d shells have too many of them.
      if constexpr (kOccupied != 0)
        written_out<kBra>([&](auto h) __attribute__((always_inline)) {
          if constexpr ((kOccupied >> h & 1) != 0) row_of_bra(h);
        });
      else if constexpr (kBra <= 10)
        written_out<kBra>([&](auto h) __attribute__((always_inline)) {
          if (occupied >> h & 1) row_of_bra(h);
        });
      else
        for (int h = 0; h < kBra; ++h)
          if (occupied >> h & 1) row_of_bra(h);
#pragma GCC unroll 10
      for (int k = 0; k < count; ++k) half[f * kKet + first + k] = sum[k];
    });
  }

  // The quartet's energy is the sum of charge times r, and charge = E weights; r of one order higher
  // is d slope + count slope, see hermite_coulomb_slope.
  __attribute__((always_inline)) void add_force(const Primitive<T>& p, const Vec<T>* slope,
                                                const Vec<T> (&d)[3], int index,
                                                Vec<T> (&force)[3]) {
    constexpr int kOrder = LB + LK;
    constexpr auto& row = kProduct<LB, LK>.row;
    Vec<T> charge[n_hermite(kOrder)]{};
    const auto row_of_bra = [&](int h) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int first = 0; first < kKet; first += kStep) {
        Vec<T> sum[kStep]{};
        for (const int f : bra.occupied[h]) {
          const T e = p.e[f * kBra + h];
#pragma GCC unroll 10
          for (int k = 0; k < kStep && first + k < kKet; ++k)
            sum[k] += e * weights[f * kKet + first + k];
        }
#pragma GCC unroll 10
        for (int k = 0; k < kStep && first + k < kKet; ++k) charge[row[h][first + k]] += sum[k];
      }
    };
    if constexpr (kBra <= 10) {
#pragma GCC unroll 10
      for (int h = 0; h < kBra; ++h) row_of_bra(h);
    } else {
      for (int h = 0; h < kBra; ++h) row_of_bra(h);
    }
    Inward inward;
    if constexpr (kOrder <= 4)
      written_out<n_hermite(kOrder)>([&](auto m) __attribute__((always_inline)) {
        inward.template add<m>(charge[m], slope);
      });
    else
      for (int m = 0; m < n_hermite(kOrder); ++m) inward.add(m, charge[m], slope);
    put_force(d, inward, index, force);
  }

  // The same; each charge is used as soon as it is known.
  __attribute__((always_inline)) void add_usual_force(const Primitive<T>& p, const Vec<T>* slope,
                                                      const Vec<T> (&d)[3], int index,
                                                      Vec<T> (&force)[3]) {
    constexpr int bras = n_hermite(LB), kets = n_hermite(LK);
    Inward inward;
    written_out<n_hermite(LB + LK)>([&](auto m) __attribute__((always_inline)) {
      Vec<T> charge{};
      written_out<kBra>([&](auto h) __attribute__((always_inline)) {
        constexpr int k = kDifference<LB, LK>.row[m][h];
        if constexpr (k >= 0)
          written_out<kProducts>([&](auto f) __attribute__((always_inline)) {
            if constexpr ((usual_pattern(f) >> h & 1) != 0)
              charge += p.e[f * bras + h] * weights[f * kets + k];
          });
      });
      inward.template add<m>(charge, slope);
    });
    put_force(d, inward, index, force);
  }

  // Sums that make a force: charge slope, and along each axis charge count slope.
  struct Inward {
    Vec<T> sum{}, along[3]{};

    template <int m>
    __attribute__((always_inline)) void add(Vec<T> charge, const Vec<T>* slope) {
      constexpr auto& lower = kLowered<LB + LK>;
      sum += charge * slope[m];
      written_out<3>([&](auto i) __attribute__((always_inline)) {
        if constexpr (lower.count[i][m] == 1)
          along[i] += charge * slope[lower.row[i][m]];
        else if constexpr (lower.count[i][m] > 1)
          along[i] += (T(lower.count[i][m]) * charge) * slope[lower.row[i][m]];
      });
    }

    void add(int m, Vec<T> charge, const Vec<T>* slope) {
      constexpr auto& lower = kLowered<LB + LK>;
      sum += charge * slope[m];
      for (int i = 0; i < 3; ++i)
        if (lower.count[i][m])
          along[i] += (T(lower.count[i][m]) * charge) * slope[lower.row[i][m]];
    }
  };

  __attribute__((always_inline)) void put_force(const Vec<T> (&d)[3], const Inward& inward,
                                                int index, Vec<T> (&force)[3]) {
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      const Vec<T> both = d[i] * inward.sum + inward.along[i];
      centre_sums[3 * index + i] += both;
      force[i] += both;
    }
  }

  void add_to_kets(const KetVector<T>& q, const Vec<T> (&force)[3]) {
    const std::size_t at = ket_sums.index(q);
    for (int i = 0; i < 3; ++i) ket_sums.centre[3 * at + i] -= force[i];
    Vec<T>* e = ket_sums.e.data() + at * ket_sums.each;
    for (int g = 0; g < ket.products; ++g) {
      const std::vector<int>& hermites = ket_hermites[g];
      for (int first = 0; first < int(hermites.size()); first += 8)
        by_number<8>(int(hermites.size()) - first, [&](auto count) {
          Vec<T> sums[count]{};
          for (int f = 0; f < bra.products; ++f) {
            const Vec<T> factor = density[f * ket.products + g];
#pragma GCC unroll 8
            for (int k = 0; k < count; ++k) sums[k] += factor * half[f * kKet + hermites[first + k]];
          }
#pragma GCC unroll 8
          for (int k = 0; k < count; ++k) e[g * kKet + hermites[first + k]] += sums[k];
        });
    }
  }
};

template <class T, int LB, int LK, int kProducts = 0>
void eri_gradient_block(const BoysFit<T>* fits, const EriGradientProblem<T>& problem,
                        const std::int32_t* block, const std::vector<Side<T>>& sides,
                        std::vector<KetSums<T>>& sums) {
  const auto& fit = fits[sides[block[0]].order + sides[block[1]].order + 1];
  EriGradientVertex<T, LB, LK, kProducts> vertex(fit, problem, block[0], block[1], sides, sums);
  const auto& bras = sides[block[0]].strips[block[2]].pairs;
  const auto& kets = sides[block[1]].strips[block[3]];
  const auto& products = sums[block[1]].products[block[3]];
  const bool square = block[0] == block[1] && block[2] == block[3];
  for (int b = 0; b < static_cast<int>(bras.size()); ++b) {
    vertex.begin(bras[b]);
    for (std::size_t n = 0; n < kets.groups.size(); ++n) {
      const auto& group = kets.groups[n];
      // Of a square block one triangle: lanes before b were done when they were the bra.
      const int skip = square ? std::max(0, b - group.first) : 0;
      if (skip >= group.lanes) continue;
      vertex(bras[b], group, products[n], skip, square ? b - group.first : -1);
    }
    vertex.end(bras[b], problem.eri.classes[block[0]].e);
  }
}

template <class T, int LB, int LK>
void eri_gradient_ket(int order, const BoysFit<T>* fits, const EriGradientProblem<T>& problem,
                      const std::int32_t* block, const std::vector<Side<T>>& sides,
                      std::vector<KetSums<T>>& sums) {
  constexpr int usual = LB > 1 || LK > 2 ? 0 : LB == 1 ? 4 : 1;
  if (order == LK && usual > 0 && is_usual(sides[block[0]], usual))
    eri_gradient_block<T, LB, LK, usual>(fits, problem, block, sides, sums);
  else if (order == LK)
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
    sums.emplace_back(sides[i], problem.products);
  }
  const auto fits = read_fits<T>(problem.eri.boys, 2 * highest + 1, true);
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
