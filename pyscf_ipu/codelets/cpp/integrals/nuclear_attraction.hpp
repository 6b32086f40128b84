// Attraction of a class of Hermite pairs by the nuclei: the codelet "nuclear_attraction".
//
// Primitive pairs lie on the vector lanes, nuclei follow one another.  The sum over nuclei is kept
// in two words, as in the portable vertex: forty terms of -30 Hartree would cost the last digits.
#pragma once

#include <algorithm>
#include <vector>

#include "hermite.hpp"
#include "kernels.hpp"

namespace pyscf_ipu::ISA {

// The rounding errors of `total` add up in `low`.  A compiler may contract the product in `term` into
// the sum, which leaves out a rounding and counts nothing twice.
template <class T>
inline void add_exactly(Vec<T>& total, Vec<T>& low, Vec<T> term) {
  const TwoWords<T> sum = exact_sum<T>(total, term);
  low += sum.low;
  total = sum.high;
}

template <class T, int L>
struct NuclearVertex {
  static constexpr int kSize = n_hermite(L);

  const Attraction<T>& a;
  const BoysFit<T>& fit;

  // potential[h][lane] of primitive pairs first .. first + kWidth - 1 (repeating the last one).
  void potential(std::int64_t first, T* out) const {
    Vec<T> p, high[3], low[3];
    IntVec<T> own;
    for (int lane = 0; lane < kWidth<T>; ++lane) {
      const std::int64_t at = std::min(first + lane, a.primitives - 1);
      p[lane] = a.p[at];
      own[lane] = a.atom[at / a.depth];
      for (int d = 0; d < 3; ++d)
        high[d][lane] = a.high[3 * at + d], low[d][lane] = a.low[3 * at + d];
    }
    Vec<T> total[kSize]{}, error[kSize]{}, r[kSize], x[3];
    const Vec<T> inverse = T(1) / p;
    constexpr long double two_pi = 6.283185307179586476925286766559L;
    constexpr T word = T(two_pi), rest = T(two_pi - (long double)word);
    const Vec<T> prefactor = inverse * word + inverse * rest;
    for (std::int64_t c = 0; c < a.atoms; ++c) {
      if (a.charge[c] == T(0)) continue;
      for (int d = 0; d < 3; ++d)
        x[d] = (high[d] - a.nuclei_high[3 * c + d]) + (low[d] - a.nuclei_low[3 * c + d]);
      hermite_coulomb<T, L>(fit, kCoulomb<T>, p, prefactor, x[0], x[1], x[2], r);
      const Vec<T> charge =
          select<T>(own == typename Simd<T>::integer(c), Vec<T>{}, splat<T>(-a.charge[c]));
      for (int h = 0; h < kSize; ++h) add_exactly<T>(total[h], error[h], charge * r[h]);
    }
    for (int h = 0; h < kSize; ++h) store<T>(out + h * kWidth<T>, total[h] + error[h]);
  }

  void operator()(T* out) const {
    std::vector<T> v(kSize * kWidth<T>);
    std::fill_n(out, a.primitives / a.depth * a.products, T(0));
    for (std::int64_t first = 0; first < a.primitives; first += kWidth<T>) {
      potential(first, v.data());
      for (int lane = 0; lane < kWidth<T> && first + lane < a.primitives; ++lane) {
        const std::int64_t at = first + lane;
        const T* e = a.e + at * a.products * kSize;
        T* to = out + at / a.depth * a.products;
        for (int f = 0; f < a.products; ++f)
          for (int h = 0; h < kSize; ++h) to[f] += e[f * kSize + h] * v[h * kWidth<T> + lane];
      }
    }
  }
};

template <class T, int L>
void nuclear_dispatch(const Attraction<T>& a, const BoysFit<T>& fit, T* out) {
  if (a.order == L)
    NuclearVertex<T, L>{a, fit}(out);
  else if constexpr (L > 0)
    nuclear_dispatch<T, L - 1>(a, fit, out);
}

template <class T>
void nuclear_attraction(const Attraction<T>& a, T* out) {
  const double* boys = a.boys;
  nuclear_dispatch<T, kMaxOrder>(a, read_fit<T>(boys, a.order), out);
}

}  // namespace pyscf_ipu::ISA
