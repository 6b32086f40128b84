// The Boys function and the Hermite Coulomb integrals R_tuv on a vector of arguments: the methods
// of numerics/boys.py and numerics/hermite.py (equations and sources there), with every loop known
// at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

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

// sum_k c_k T_k as coefficients of powers, in place.
inline void powers_of(double* c, int terms) {
  for (int k = 0; k + 2 < terms; ++k)  // T_j = 2 u T_(j-1) - T_(j-2), unrolled from the top
    for (int j = terms - 1; j >= k + 2; --j) {
      c[j - 2] -= c[j];
      c[j] *= 2;
    }
}

// Where AVX-512 can look up 16 numbers at once, the fit is cut into as many pieces, on each of which a
// polynomial of this degree is as exact as float.
constexpr int kPieces = 16, kPieceDegree = 8;

// The orders whose fits are cut: below, powers are as fast; above, the degree is too low.
template <class T>
constexpr bool in_pieces(int order) {
#ifdef __AVX512F__
  return std::is_same_v<T, float> && order >= 2 && order <= 5;
#else
  return false;
#endif
}

// The Chebyshev fit of numerics/boys.py for one order: its map, shift and coefficients; and the
// powers of the place in a piece, from -1/2 to 1/2, the lowest ones in two words.
template <class T>
struct BoysFit {
  T scale, shift, lead_low;
  std::array<T, 80> coefficient;
  alignas(64) T piece[kPieceDegree + 2][kPieces];

  // Cuts the series with these coefficients: it is interpolated at Chebyshev's nodes.
  void cut(const double* c, int terms) {
    constexpr int n = kPieceDegree + 1;
    constexpr double pi = 3.14159265358979323846;
    double wave[n][n];
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) wave[j][k] = std::cos(pi * j * (k + 0.5) / n);
    for (int i = 0; i < kPieces; ++i) {
      double found[n] = {};
      for (int k = 0; k < n; ++k) {
        const double u = (2 * i + 1 + wave[1][k]) / kPieces - 1;
        double first = 0, second = 0;
        for (int j = terms - 1; j >= 1; --j) {
          const double next = 2 * u * first + (c[j] - second);
          second = first, first = next;
        }
        const double value = u * first + (c[0] - second);
        for (int j = 0; j < n; ++j) found[j] += (j ? 2.0 : 1.0) / n * wave[j][k] * value;
      }
      powers_of(found, n);
      for (int j = 0; j < n; ++j) piece[j][i] = T(std::ldexp(found[j], j));
      piece[n][i] = T(found[0] - double(piece[0][i]));
    }
  }
};

// In float32, powers of u are as accurate as Chebyshev polynomials for the lowest orders (their
// largest coefficient is below one) and take half the operations; beyond, they lose digits.
template <class T>
constexpr bool by_powers(int order) { return std::is_same_v<T, float> && order <= 1; }

// From scale, shift, number of coefficients, coefficients; moves `from` behind them.  Throws if the
// fit is not of the degree that the kernels have unrolled.
template <class T>
inline BoysFit<T> read_fit(const double*& from, int order, bool cut = false) {
  BoysFit<T> fit{};
  fit.scale = T(from[0]), fit.shift = T(from[1]);
  const int terms = static_cast<int>(from[2]);
  if (terms != boys_degree<T>(order) + 1) throw std::invalid_argument("degree of a Boys fit");
  double c[80];
  std::copy_n(from + 3, terms, c);
  if (cut && in_pieces<T>(order)) fit.cut(c, terms);
  if (by_powers<T>(order)) powers_of(c, terms);
  for (int k = 0; k < terms; ++k) fit.coefficient[k] = T(c[k]);
  fit.lead_low = T(c[0] - double(fit.coefficient[0]));
  from += 3 + terms;
  return fit;
}

// The fits of all orders up to `highest`, one behind another.
template <class T>
inline std::vector<BoysFit<T>> read_fits(const double* from, int highest, bool cut = false) {
  std::vector<BoysFit<T>> fits;
  for (int order = 0; order <= highest; ++order) fits.push_back(read_fit<T>(from, order, cut));
  return fits;
}

// The fitted series at u in [-1, 1], even and odd terms apart: two short chains instead of a long one.
template <class T, int L>
inline Vec<T> boys_series(const BoysFit<T>& fit, Vec<T> u) {
  constexpr int degree = boys_degree<T>(L), even = degree / 2, odd = (degree - 1) / 2;
  const auto& c = fit.coefficient;
  const Vec<T> square = u * u;
  if constexpr (by_powers<T>(L)) {
    Vec<T> g = splat<T>(c[2 * even]), h = splat<T>(c[2 * odd + 1]);
#pragma GCC unroll 40
    for (int k = even - 1; k >= 1; --k) g = g * square + c[2 * k];
#pragma GCC unroll 40
    for (int k = odd - 1; k >= 0; --k) h = h * square + c[2 * k + 1];
    return c[0] + (h * u + (g * square + fit.lead_low));
  } else {
    // T_2k(u) = T_k(v) and T_2k+1(u) = u W_k(v) with v = 2 u^2 - 1 obey Clenshaw's recursion.
    const Vec<T> twice = T(4) * square - T(2);
    Vec<T> g1{}, g2{}, h1{}, h2{};
#pragma GCC unroll 40
    for (int k = even; k >= 1; --k) {
      const Vec<T> g = twice * g1 + (c[2 * k] - g2);
      g2 = g1, g1 = g;
    }
#pragma GCC unroll 40
    for (int k = odd; k >= 1; --k) {
      const Vec<T> h = twice * h1 + (c[2 * k + 1] - h2);
      h2 = h1, h1 = h;
    }
    const Vec<T> last = (twice - T(1)) * h1 + (c[1] - h2);
    return (c[0] - g2) + (u * last + (T(0.5) * twice * g1 + fit.lead_low));
  }
}

// The same series, of a fit that has been cut.
template <class T>
inline Vec<T> boys_piece(const BoysFit<T>& fit, Vec<T> u) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) {
    constexpr T half = T(kPieces / 2), middle = half - T(0.5);
    constexpr T shift = T(12582912);  // rounds, and the piece stands in the lowest bits
    // A little less than half, so that u = 1 is in the last piece.
    const Vec<T> rounded = (u * (half - T(2e-6)) + middle) + shift;
    const Vec<T> x = u * half + (middle - (rounded - shift));
    const auto look_up = [&](int j) __attribute__((always_inline)) {
      return (Vec<T>)_mm512_permutexvar_ps((__m512i)rounded, _mm512_load_ps(fit.piece[j]));
    };
    Vec<T> sum = look_up(kPieceDegree);
#pragma GCC unroll 8
    for (int j = kPieceDegree - 1; j >= 1; --j) sum = sum * x + look_up(j);
    return look_up(0) + (sum * x + look_up(kPieceDegree + 1));
  }
#endif
  return fit.lead_low * u;  // never: in_pieces
}

// Where the top order underflows, the others come upwards from F_0 = sqrt(pi / t) / 2.
template <class T, int L>
inline void boys_far(Vec<T> t, Vec<T>* f) {
  const IntVec<T> far = t > T(200);
  const Vec<T> safe = select<T>(far, t, splat<T>(T(200)));
  const Vec<T> inverse = T(1) / safe;
  Vec<T> up = T(0.88622692545275801) * square_root<T>(inverse);
  for (int n = 0; n <= L; ++n) {
    if (n > 0) up = up * (T(n - 0.5) * inverse);
    f[n] = select<T>(far, up, f[n]);
  }
}

// `kCut`: whether the fit has been cut, if it is one of `in_pieces`.
template <class T, int L, bool kCut = false>
inline void boys(const BoysFit<T>& fit, Vec<T> t, Vec<T>* f) {
  const Vec<T> u = (t - fit.scale) * reciprocal<T>(t + fit.scale);
  const Vec<T> root = reciprocal_root<T>(t + fit.shift);
  Vec<T> top = root;
  if constexpr (kCut && in_pieces<T>(L))
    top *= boys_piece<T>(fit, u);
  else
    top *= boys_series<T, L>(fit, u);
  if constexpr (L > 0) {
    const Vec<T> square = root * root;
    for (int n = 0; n < L; ++n) top = top * square;
    const Vec<T> decay = exp_minus<T>(t), two_t = t + t;
    f[L] = top;
#pragma GCC unroll 8
    for (int n = L; n >= 1; --n) {
      const Vec<T> raised = two_t * f[n] + decay;
      // 1/(2n-1) in two words, as in precision.scaled: rounded, it would be a bias.
      constexpr long double one = 1.0L;
      const T high = T(one / (2 * n - 1)), low = T(one / (2 * n - 1) - (long double)high);
      f[n - 1] = n == 1 ? raised : raised * high + raised * low;
    }
    constexpr bool may_underflow = 6.0 * (L + 0.5) > -std::numeric_limits<T>::min_exponent10;
    if constexpr (may_underflow) boys_far<T, L>(t, f);
  } else {
    f[0] = top;
  }
}

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
