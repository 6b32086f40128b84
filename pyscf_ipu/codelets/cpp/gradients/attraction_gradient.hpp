// Derivatives of the attraction by the nuclei, of a class of Hermite pairs: the codelet
// "attraction_gradient".  Primitive pairs lie on the vector lanes, nuclei follow one another.
#pragma once

#include <algorithm>
#include <vector>

#include "gradients/repulsion/eri_gradient.hpp"
#include "hermite.hpp"
#include "kernels.hpp"

namespace pyscf_ipu::ISA {

template <class T, int L>
struct AttractionGradientVertex {
  static constexpr int kSize = n_hermite(L);

  const Attraction<T>& a;
  const BoysFit<T>& fit;
  const AttractionGradient<T>& to;

  void operator()() const {
    const std::int64_t each = a.products * kSize;
    std::vector<Vec<T>> on_nuclei(3 * a.atoms);
    for (std::int64_t first = 0; first < a.primitives; first += kWidth<T>) {
      const int lanes = int(std::min<std::int64_t>(kWidth<T>, a.primitives - first));
      Vec<T> p = splat<T>(T(1)), high[3]{}, low[3]{}, charge[kSize]{};
      IntVec<T> own{};
      for (int lane = 0; lane < lanes; ++lane) {
        const std::int64_t at = first + lane;
        p[lane] = a.p[at];
        own[lane] = a.atom[at / a.depth];
        for (int d = 0; d < 3; ++d)
          high[d][lane] = a.high[3 * at + d], low[d][lane] = a.low[3 * at + d];
        const T *e = a.e + at * each, *weight = to.weights + at / a.depth * a.products;
        for (int f = 0; f < a.products; ++f)
          for (int h = 0; h < kSize; ++h) charge[h][lane] += weight[f] * e[f * kSize + h];
      }
      Vec<T> potential[kSize]{}, force[3]{};
      nuclei(p, high, low, own, charge, potential, force, on_nuclei.data());
      for (int lane = 0; lane < lanes; ++lane) {
        const std::int64_t at = first + lane;
        const T* weight = to.weights + at / a.depth * a.products;
        for (int f = 0; f < a.products; ++f)
          for (int h = 0; h < kSize; ++h)
            to.e[at * each + f * kSize + h] = weight[f] * potential[h][lane];
        for (int d = 0; d < 3; ++d) to.centre[3 * at + d] = force[d][lane];
      }
    }
    for (std::int64_t i = 0; i < 3 * a.atoms; ++i) to.nuclei[i] = sum<T>(on_nuclei[i]);
  }

 private:
  void nuclei(Vec<T> p, const Vec<T> (&high)[3], const Vec<T> (&low)[3], IntVec<T> own,
              const Vec<T> (&charge)[kSize], Vec<T> (&potential)[kSize], Vec<T> (&force)[3],
              Vec<T>* on_nuclei) const {
    const Vec<T> prefactor = T(6.283185307179586476925286766559L) / p;
    for (std::int64_t c = 0; c < a.atoms; ++c) {
      if (a.charge[c] == T(0)) continue;
      Vec<T> x[3], r[n_hermite(L + 1)];
      for (int d = 0; d < 3; ++d)
        x[d] = (high[d] - a.nuclei_high[3 * c + d]) + (low[d] - a.nuclei_low[3 * c + d]);
      const Vec<T> z =
          select<T>(own == typename Simd<T>::integer(c), Vec<T>{}, splat<T>(-a.charge[c]));
      hermite_coulomb<T, L + 1>(fit, kCoulomb<T>, p, prefactor * z, x[0], x[1], x[2], r);
      for (int h = 0; h < kSize; ++h) potential[h] += r[h];
      for (int d = 0; d < 3; ++d) {
        Vec<T> along{};
        for (int h = 0; h < kSize; ++h) along += charge[h] * r[kRaised<L>.row[d][h]];
        force[d] += along;
        on_nuclei[3 * c + d] -= along;
      }
    }
  }
};

template <class T, int L>
void attraction_gradient_dispatch(const Attraction<T>& a, const BoysFit<T>& fit,
                                  const AttractionGradient<T>& to) {
  if (a.order == L)
    AttractionGradientVertex<T, L>{a, fit, to}();
  else if constexpr (L > 0)
    attraction_gradient_dispatch<T, L - 1>(a, fit, to);
}

// The fit is that of one order above the class's.
template <class T>
void attraction_gradient(const Attraction<T>& a, const AttractionGradient<T>& to) {
  const double* boys = a.boys;
  attraction_gradient_dispatch<T, kMaxOrder>(a, read_fit<T>(boys, a.order + 1), to);
}

}  // namespace pyscf_ipu::ISA
