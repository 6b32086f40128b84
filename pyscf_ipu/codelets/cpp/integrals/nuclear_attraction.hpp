// Attraction of a class of Hermite pairs by the nuclei: the codelet "nuclear_attraction".
//
// Primitive pairs lie on the vector lanes, nuclei follow one another.  All of it is done in double,
// also for floats, and rounded once at the end: these are the largest integrals of a molecule, they
// are few, and their errors would be most of the error of its energy.
#pragma once

#include <algorithm>
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

  void operator()(T* out) const {
    std::vector<double> v(kSize * kLanes), sums(a.primitives / a.depth * a.products);
    for (std::int64_t first = 0; first < a.primitives; first += kLanes) {
      potential(first, v.data());
      for (int lane = 0; lane < kLanes && first + lane < a.primitives; ++lane) {
        const std::int64_t at = first + lane;
        const T* e = a.e + at * a.products * kSize;
        double* to = sums.data() + at / a.depth * a.products;
        for (int f = 0; f < a.products; ++f)
          for (int h = 0; h < kSize; ++h) to[f] += e[f * kSize + h] * v[h * kLanes + lane];
      }
    }
    std::copy(sums.begin(), sums.end(), out);
  }
};

template <class T, int L>
void nuclear_dispatch(const Attraction<T>& a, const BoysFit<double>& fit, T* out) {
  if (a.order == L)
    NuclearVertex<T, L>{a, fit}(out);
  else if constexpr (L > 0)
    nuclear_dispatch<T, L - 1>(a, fit, out);
}

template <class T>
void nuclear_attraction(const Attraction<T>& a, T* out) {
  const double* boys = a.boys;
  nuclear_dispatch<T, kMaxOrder>(a, read_fit<double>(boys, a.order), out);
}

}  // namespace pyscf_ipu::ISA
