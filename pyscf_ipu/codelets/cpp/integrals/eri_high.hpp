// What the loops over primitive quartets do where a class has an f shell beside a d or f shell: its
// orders are known at run time only.  Written out for each pair of orders, as eri.hpp does for lower
// ones, these loops would double the library and the time to compile it.
#pragma once

#include <array>
#include <vector>

#include "hermite.hpp"
#include "integrals/eri_sides.hpp"

namespace pyscf_ipu::ISA {

constexpr int kHigh = -1;  // in place of the orders of a vertex that takes any
constexpr int kMostOrder = 2 * kMaxOrder + 1;  // of R in a gradient

// Numbers of Hermites of a bra and a ket, known when compiled or, for kHigh, when run.
template <int LB, int LK>
struct Hermites {
  static constexpr int kBra = n_hermite(LB), kKet = n_hermite(LK);
  Hermites(int, int) {}
};

template <>
struct Hermites<kHigh, kHigh> {
  const int kBra, kKet;
  Hermites(int bra, int ket) : kBra(n_hermite(bra)), kKet(n_hermite(ket)) {}
};

// plain_seeds() of an order known at run time.
template <class T, int L = kMostOrder>
void seeds_high(int order, const BoysFit<T>& fit, Vec<T> alpha, Vec<T> prefactor, Vec<T> square,
                Vec<T>* f) {
  if (order == L)
    plain_seeds<T, L>(fit, alpha, prefactor, square, f);
  else if constexpr (L > kWrittenOut + 1)
    seeds_high<T, L - 1>(order, fit, alpha, prefactor, square, f);
}

// The factor of the second term of every row of the recursion; 0 where there is none.
template <class T>
inline constexpr auto kCount = [] {
  std::array<T, n_hermite(kMostOrder)> count{};
  for (int h = 0; h < n_hermite(kMostOrder); ++h) count[h] = T(kRecursion<kMostOrder>.count[h]);
  return count;
}();

// hermite_coulomb() of an order known at run time; rows of lower orders come first in every order.
template <class T>
void hermite_coulomb_high(int order, const BoysFit<T>& fit, const Interaction<T>& of, Vec<T> alpha,
                          Vec<T> prefactor, Vec<T> x, Vec<T> y, Vec<T> z, Vec<T>* r) {
  Vec<T> f[kMostOrder + 1];
  const Vec<T> square = x * x + y * y + z * z;
  if (of.long_range == T(0)) {
    seeds_high<T>(order, fit, alpha, prefactor, square, f);
  } else {
    const Vec<T> root = of.omega * reciprocal_root<T>(splat<T>(of.omega * of.omega) + alpha);
    Vec<T> near[kMostOrder + 1];
    seeds_high<T>(order, fit, alpha, prefactor * of.full, square, near);
    seeds_high<T>(order, fit, alpha * (root * root), prefactor * (of.long_range * root), square, f);
    for (int n = 0; n <= order; ++n) f[n] += near[n];
  }
  const Vec<T> axis[3] = {x, y, z};
  constexpr auto& rule = kRecursion<kMostOrder>;
  r[0] = f[order];
  for (int n = order - 1; n >= 0; --n) {
    for (int h = n_hermite(order - n) - 1; h >= 1; --h)
      r[h] = axis[rule.axis[h]] * r[rule.one[h]] + kCount<T>[h] * r[rule.two[h]];
    r[0] = f[n];
  }
}

// Tables of a bra and a ket class of any orders, and the R of one primitive quartet.
template <class T>
struct HighQuartet {
  static constexpr int kStep = 14;  // divides the Hermites of orders 5 and 6

  const int order, bra, ket;  // order of R, Hermites of a bra and of a ket
  std::vector<int> row;       // [bra, ket], of the sum of two Hermites
  std::vector<std::vector<int>> of_product;  // the Hermites of each product of the bra
  std::vector<Vec<T>> r;

  HighQuartet(const Side<T>& one, const Side<T>& two, int derivative)
      : order(one.order + two.order + derivative), bra(one.hermites), ket(two.hermites),
        row(bra * ket), of_product(one.products), r(n_hermite(order)) {
    for_each_row(one.order, [&](int t, int u, int v) {
      for_each_row(two.order, [&](int a, int b, int c) {
        row[hermite_row(t, u, v) * ket + hermite_row(a, b, c)] = hermite_row(t + a, u + b, v + c);
      });
    });
    for (int h = 0; h < bra; ++h)
      for (const int f : one.occupied[h]) of_product[f].push_back(h);
  }

  void integrals(const BoysFit<T>& fit, const Interaction<T>& of, Vec<T> alpha, Vec<T> prefactor,
                 const Vec<T> (&d)[3]) {
    hermite_coulomb_high<T>(order, fit, of, alpha, prefactor, d[0], d[1], d[2], r.data());
  }

  // half[f, k] += sum_h e[f, h] r[h + k].
  void contract(const T* e, Vec<T>* half) const {
    for (std::size_t f = 0; f < of_product.size(); ++f, e += bra, half += ket)
      for (int first = 0; first < ket; first += kStep) {
        Vec<T> sum[kStep];
#pragma GCC unroll 14
        for (int k = 0; k < kStep; ++k) sum[k] = half[first + k];
        for (const int h : of_product[f]) {
          const int* m = row.data() + h * ket + first;
#pragma GCC unroll 14
          for (int k = 0; k < kStep; ++k) sum[k] += e[h] * r[m[k]];
        }
#pragma GCC unroll 14
        for (int k = 0; k < kStep; ++k) half[first + k] = sum[k];
      }
  }
};

}  // namespace pyscf_ipu::ISA
