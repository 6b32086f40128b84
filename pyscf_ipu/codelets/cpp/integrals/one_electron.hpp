// Overlap, attraction by the nuclei and dipole of all Hermite pairs: the codelet "one_electron".
//
// Primitive pairs lie on the vector lanes, nuclei follow one another.  All of it is done in double,
// also for floats, and rounded once at the end: these are the largest integrals of a molecule, they
// are few, and their errors would be most of the error of its energy.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "hermite.hpp"
#include "kernels.hpp"

namespace pyscf_ipu::ISA {

template <class T, int L>
struct NuclearVertex {
  static constexpr int kSize = n_hermite(L);
  static constexpr int kLanes = kWidth<double>;

  const Attraction<T>& a;
  const BoysFit<double>& fit;

  // potential[h][lane] of primitive pairs first .. first + kLanes - 1 (repeating the last one).
  void potential(std::int64_t first, double* out) const {
    Vec<double> p, centre[3];
    IntVec<double> own;
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::int64_t at = std::min(first + lane, a.primitives - 1);
      p[lane] = a.p[at];
      own[lane] = a.atom[at / a.depth];
      for (int d = 0; d < 3; ++d) centre[d][lane] = double(a.high[3 * at + d]) + a.low[3 * at + d];
    }
    Vec<double> total[kSize]{}, r[kSize], x[3];
    const Vec<double> prefactor = 6.283185307179586476925286766559 / p;
    for (std::int64_t c = 0; c < a.atoms; ++c) {
      if (a.charge[c] == T(0)) continue;
      for (int d = 0; d < 3; ++d)
        x[d] = centre[d] - (double(a.nuclei_high[3 * c + d]) + a.nuclei_low[3 * c + d]);
      hermite_coulomb<double, L>(fit, kCoulomb<double>, p, prefactor, x[0], x[1], x[2], r);
      const Vec<double> charge =
          select<double>(own == std::int64_t(c), Vec<double>{}, splat<double>(-a.charge[c]));
      for (int h = 0; h < kSize; ++h) total[h] += charge * r[h];
    }
    for (int h = 0; h < kSize; ++h) store<double>(out + h * kLanes, total[h]);
  }

  // sums[primitives / depth, products]
  void operator()(double* sums) const {
    std::vector<double> v(kSize * kLanes);
    for (std::int64_t first = 0; first < a.primitives; first += kLanes) {
      potential(first, v.data());
      for (int lane = 0; lane < kLanes && first + lane < a.primitives; ++lane) {
        const std::int64_t at = first + lane;
        const T* e = a.e + at * a.products * kSize;
        double* to = sums + at / a.depth * a.products;
        for (int f = 0; f < a.products; ++f)
          for (int h = 0; h < kSize; ++h) to[f] += e[f * kSize + h] * v[h * kLanes + lane];
      }
    }
  }
};

template <class T, int L>
void nuclear_dispatch(const Attraction<T>& a, const BoysFit<double>& fit, double* sums) {
  if (a.order == L)
    NuclearVertex<T, L>{a, fit}(sums);
  else if constexpr (L > 0)
    nuclear_dispatch<T, L - 1>(a, fit, sums);
}

// sums[4][primitives / depth, products]: overlap and dipole.  <x> = (E_100 + P_x E_000) (pi/p)^(3/2);
// an s pair has no E_100.
template <class T>
void overlap_and_dipole(const Attraction<T>& a, double* sums) {
  const std::int64_t hermites = n_hermite(a.order), each = a.primitives / a.depth * a.products;
  for (std::int64_t at = 0; at < a.primitives; ++at) {
    const double p = a.p[at], gauss = 5.568327996831707845284817982118836 / (p * std::sqrt(p));
    for (int f = 0; f < a.products; ++f) {
      const T* e = a.e + (at * a.products + f) * hermites;
      double* to = sums + at / a.depth * a.products + f;
      to[0] += e[0] * gauss;
      for (int d = 0; d < 3; ++d) {
        const double centre = double(a.high[3 * at + d]) + a.low[3 * at + d];
        to[(1 + d) * each] += ((a.order ? double(e[1 + d]) : 0.0) + centre * e[0]) * gauss;
      }
    }
  }
}

template <class T>
void one_electron(const std::vector<OneElectronClass<T>>& classes, std::int64_t rows, T* overlap,
                  T* nuclear, T* dipole) {
  int highest = 0;
  for (const OneElectronClass<T>& c : classes) highest = std::max(highest, c.of.order);
  const auto fits = read_fits<double>(classes.front().of.boys, highest);
  std::vector<double> total(5 * rows);
  std::int64_t first_row = 0;
  for (const OneElectronClass<T>& c : classes) {
    const std::int64_t chunks = c.of.primitives / c.of.depth, each = chunks * c.of.products;
    std::vector<double> sums(5 * each);
    overlap_and_dipole(c.of, sums.data());
    nuclear_dispatch<T, kMaxOrder>(c.of, fits[c.of.order], sums.data() + 4 * each);
    for (int quantity = 0; quantity < 5; ++quantity)
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t pair = chunk / c.chunks * c.pairs + c.segment[chunk];
        double* to = &total[quantity * rows + first_row + pair * c.of.products];
        const double* from = &sums[quantity * each + chunk * c.of.products];
        for (int f = 0; f < c.of.products; ++f) to[f] += from[f];
      }
    first_row += chunks / c.chunks * c.pairs * c.of.products;
  }
  std::copy_n(total.data(), rows, overlap);
  std::copy_n(total.data() + rows, 3 * rows, dipole);
  std::copy_n(total.data() + 4 * rows, rows, nuclear);
}

}  // namespace pyscf_ipu::ISA
