// The Boys function on a vector of arguments: the method of numerics/boys.py (equations and sources
// there), with every loop known at compile time.
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

}  // namespace pyscf_ipu::ISA
