// The Hermite Coulomb integrals R_tuv on a vector of arguments: the method of numerics/hermite.py
// (equations and sources there), with every loop known at compile time.
#pragma once

#include <array>

#include "boys.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

constexpr int n_hermite(int order) { return (order + 1) * (order + 2) * (order + 3) / 6; }

// Row of (t, u, v): by degree, then t descending, then u descending.
constexpr int hermite_row(int t, int u, int v) {
  const int d = t + u + v, rest = u + v;
  return n_hermite(d - 1) + rest * (rest + 1) / 2 + v;
}

// Calls f(t, u, v) for every row up to total degree `order`.
template <class F>
constexpr void for_each_row(int order, F f) {
  for (int d = 0; d <= order; ++d)
    for (int t = d; t >= 0; --t)
      for (int u = d - t; u >= 0; --u) f(t, u, d - t - u);
}

// How each row of degree >= 1 is raised: r[axis] * [one] + count * [two].
template <int L>
struct Recursion {
  static constexpr int size = n_hermite(L);
  std::array<int, size> axis{}, one{}, two{}, count{};

  constexpr Recursion() {
    for_each_row(L, [this](int t, int u, int v) {
      if (t + u + v > 0) fill(t, u, v);
    });
  }

 private:
  constexpr void fill(int t, int u, int v) {
    const int row = hermite_row(t, u, v);
    // Along an axis of power 1 the second term vanishes.
    const int power[3] = {t, u, v};
    int best = -1;
    for (int a = 0; a < 3; ++a)
      if (power[a] > 0 && (best < 0 || power[a] < power[best])) best = a;
    axis[row] = best;
    one[row] = hermite_row(t - (best == 0), u - (best == 1), v - (best == 2));
    count[row] = power[best] - 1;
    if (count[row] > 0)
      two[row] = hermite_row(t - 2 * (best == 0), u - 2 * (best == 1), v - 2 * (best == 2));
  }
};

template <int L>
inline constexpr Recursion<L> kRecursion{};

// Row of the sum of a bra and a ket Hermite.
template <int LB, int LK>
struct ProductIndex {
  std::array<std::array<int, n_hermite(LK)>, n_hermite(LB)> row{};

  constexpr ProductIndex() {
    for_each_row(LB, [this](int t, int u, int v) {
      for_each_row(LK, [&](int a, int b, int c) {
        row[hermite_row(t, u, v)][hermite_row(a, b, c)] = hermite_row(t + a, u + b, v + c);
      });
    });
  }
};

template <int LB, int LK>
inline constexpr ProductIndex<LB, LK> kProduct{};

// 1/r alone.
template <class T>
inline constexpr Interaction<T> kCoulomb{1, 0, 0};

// prefactor * R^n_000 for n <= L.
template <class T, int L, bool kCut = false>
inline void plain_seeds(const BoysFit<T>& fit, Vec<T> alpha, Vec<T> prefactor, Vec<T> square,
                        Vec<T>* f) {
  boys<T, L, kCut>(fit, alpha * square, f);
  const Vec<T> factor = T(-2) * alpha;
#pragma GCC unroll 9
  for (int n = 0; n <= L; ++n) {
    f[n] = f[n] * prefactor;
    prefactor = prefactor * factor;
  }
}

// The same of another interaction than 1/r; not inlined, for the sake of the usual one.
template <class T, int L>
__attribute__((noinline)) void separated_seeds(const BoysFit<T>& fit, const Interaction<T>& of,
                                               Vec<T> alpha, Vec<T> prefactor, Vec<T> square,
                                               Vec<T>* f) {
  const Vec<T> root = of.omega * reciprocal_root<T>(splat<T>(of.omega * of.omega) + alpha);
  Vec<T> near[L + 1];
  plain_seeds<T, L>(fit, alpha, prefactor * of.full, square, near);
  plain_seeds<T, L>(fit, alpha * (root * root), prefactor * (of.long_range * root), square, f);
  for (int n = 0; n <= L; ++n) f[n] += near[n];
}

// One level of the recursion: the rows of `to` from those of `from`, which are of one order of the
// Boys function higher; both may be the same array.
template <class T, int L>
inline __attribute__((always_inline)) void raise_level(const Vec<T>* axis, int rows,
                                                       const Vec<T>* from, Vec<T>* to) {
  constexpr auto& rule = kRecursion<L>;
  // A row needs rows of lower degree only, so high degrees go first.
#pragma GCC unroll 64
  for (int h = rows - 1; h >= 1; --h) {
    Vec<T> raised = axis[rule.axis[h]] * from[rule.one[h]];
    if (rule.count[h] > 0) raised += T(rule.count[h]) * from[rule.two[h]];
    to[h] = raised;
  }
}

// prefactor * R_tuv(alpha, (x, y, z)) for t + u + v <= L into r[n_hermite(L)].
template <class T, int L>
inline void hermite_coulomb(const BoysFit<T>& fit, const Interaction<T>& of, Vec<T> alpha,
                            Vec<T> prefactor, Vec<T> x, Vec<T> y, Vec<T> z, Vec<T>* r) {
  Vec<T> f[L + 1];
  const Vec<T> square = x * x + y * y + z * z;
  if (of.long_range == T(0))
    plain_seeds<T, L>(fit, alpha, prefactor, square, f);
  else
    separated_seeds<T, L>(fit, of, alpha, prefactor, square, f);
  const Vec<T> axis[3] = {x, y, z};
  r[0] = f[L];
  const auto level = [&](int n) __attribute__((always_inline)) {
    raise_level<T, L>(axis, n_hermite(L - n), r, r);
    r[0] = f[n];
  };
  if constexpr (L <= 4) {
#pragma GCC unroll 4
    for (int n = L - 1; n >= 0; --n) level(n);
  } else {
    for (int n = L - 1; n >= 0; --n) level(n);
  }
}

// The same, and what their derivatives are made of: with slope_tuv, the same from F_1, F_2, ..., is
// dR_tuv/dx = R_(t+1)uv = x slope_tuv + t slope_(t-1)uv.  The fit has been cut.
template <class T, int L>
inline void hermite_coulomb_slope(const BoysFit<T>& fit, const Interaction<T>& of, Vec<T> alpha,
                                  Vec<T> prefactor, const Vec<T> (&axis)[3], Vec<T>* r,
                                  Vec<T>* slope) {
  Vec<T> f[L + 2];
  const Vec<T> square = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2];
  if (of.long_range == T(0))
    plain_seeds<T, L + 1, true>(fit, alpha, prefactor, square, f);
  else
    separated_seeds<T, L + 1>(fit, of, alpha, prefactor, square, f);
  slope[0] = f[L + 1];
  const auto level = [&](int n) __attribute__((always_inline)) {
    raise_level<T, L>(axis, n_hermite(L + 1 - n), slope, slope);
    slope[0] = f[n];
  };
  if constexpr (L <= 4) {
#pragma GCC unroll 4
    for (int n = L; n >= 1; --n) level(n);
  } else {
    for (int n = L; n >= 1; --n) level(n);
  }
  raise_level<T, L>(axis, n_hermite(L), slope, r);
  r[0] = f[0];
}

}  // namespace pyscf_ipu::ISA
