// The sums of eri_gradient.hpp over one primitive quartet, for orders known at run time only.
#pragma once

#include <algorithm>
#include <vector>

#include "integrals/eri_high.hpp"

namespace pyscf_ipu::ISA {

template <class T>
struct HighQuartetGradient : HighQuartet<T> {
  using Base = HighQuartet<T>;
  using Base::bra, Base::ket, Base::kStep, Base::of_product, Base::r, Base::row;

  const std::vector<std::vector<int>>& occupied;  // products of each Hermite of the bra
  std::vector<Vec<T>> charge;
  std::vector<int> raised[3];  // row of every Hermite, one degree higher along each axis

  HighQuartetGradient(const Side<T>& one, const Side<T>& two)
      : Base(one, two, 1), occupied(one.occupied), charge(n_hermite(one.order + two.order)) {
    for (int d = 0; d < 3; ++d) raised[d].resize(charge.size());
    for_each_row(one.order + two.order, [this](int t, int u, int v) {
      for (int d = 0; d < 3; ++d)
        raised[d][hermite_row(t, u, v)] = hermite_row(t + (d == 0), u + (d == 1), v + (d == 2));
    });
  }

  // half[f, k] += sum_h e[f, h] r[h + k] and by_e[f, h] += sum_k weights[f, k] r[h + k].
  void contract(const T* e, const Vec<T>* weights, Vec<T>* half, Vec<T>* by_e) const {
    for (std::size_t f = 0; f < of_product.size();
         ++f, e += bra, weights += ket, half += ket, by_e += bra)
      for (int first = 0; first < ket; first += kStep) {
        Vec<T> sum[kStep];
#pragma GCC unroll 14
        for (int k = 0; k < kStep; ++k) sum[k] = half[first + k];
        for (const int h : of_product[f]) {
          const int* m = row.data() + h * ket + first;
          Vec<T> even{}, odd{};
#pragma GCC unroll 7
          for (int k = 0; k < kStep; k += 2) {
            const Vec<T> one = r[m[k]], two = r[m[k + 1]];
            sum[k] += e[h] * one;
            sum[k + 1] += e[h] * two;
            even += weights[first + k] * one;
            odd += weights[first + k + 1] * two;
          }
          by_e[h] += even + odd;
        }
#pragma GCC unroll 14
        for (int k = 0; k < kStep; ++k) half[first + k] = sum[k];
      }
  }

  // The force on the bra's centre, added to both results.
  void add_force(const T* e, const Vec<T>* weights, Vec<T>* centre, Vec<T> (&force)[3]) {
    std::fill(charge.begin(), charge.end(), Vec<T>{});  // the energy is the sum of charge times r
    for (int h = 0; h < bra; ++h)
      for (int first = 0; first < ket; first += kStep) {
        Vec<T> sum[kStep]{};
        for (const int f : occupied[h])
#pragma GCC unroll 14
          for (int k = 0; k < kStep; ++k) sum[k] += e[f * bra + h] * weights[f * ket + first + k];
        const int* m = row.data() + h * ket + first;
#pragma GCC unroll 14
        for (int k = 0; k < kStep; ++k) charge[m[k]] += sum[k];
      }
    for (int d = 0; d < 3; ++d) {
      Vec<T> along{};
      for (std::size_t m = 0; m < charge.size(); ++m) along += charge[m] * r[raised[d][m]];
      centre[d] += along;
      force[d] += along;
    }
  }
};

}  // namespace pyscf_ipu::ISA
