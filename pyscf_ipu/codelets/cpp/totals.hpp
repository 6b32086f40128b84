// Sums in twice the working precision: the codelets "compensated_sum", "compensated_dot" and
// "exact_product".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Keeps a product rounded: contracted into an fma, it would enter a two-sum twice.
template <class T>
inline T rounded(T x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

// (high, low) += sum of a * b, exact up to twice the precision (Dekker's product by fma).
template <class T>
void add_dot(const T* a, const T* b, std::int64_t n, T& high, T& low) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T p = rounded(a[i] * b[i]), error = std::fma(a[i], b[i], -p);
    const T s = high + p, t = s - high;
    low += ((high - (s - t)) + (p - t)) + error;
    high = s;
  }
}

// A sum of products of floats, which are exact in double: no rounding of its own to speak of.
struct WideDot {
  double total = 0;

  void add(const float* a, const float* b, std::int64_t n) {
    constexpr int lanes = 16;
    double parts[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int k = 0; k < lanes; ++k) parts[k] += static_cast<double>(a[i + k]) * b[i + k];
    for (int k = 0; k < lanes; ++k) total += parts[k];
    for (; i < n; ++i) total += static_cast<double>(a[i]) * b[i];
  }
  void store(float* words) const {
    words[0] = static_cast<float>(total);
    words[1] = static_cast<float>(total - words[0]);
  }
};

// The same of doubles, in two words.
struct TwoWordDot {
  double high = 0, low = 0;

  void add(const double* a, const double* b, std::int64_t n) { add_dot(a, b, n, high, low); }
  void store(double* words) const {
    words[0] = high;
    words[1] = low;
  }
};

template <class T>
using ExactDot = std::conditional_t<std::is_same_v<T, float>, WideDot, TwoWordDot>;

// (high, low) += x + rest, for numbers or vectors of them (Knuth's two-sum).
template <class V>
inline void add_to(V& high, V& low, V x, V rest) {
  const V s = high + x, t = s - high;
  low += ((high - (s - t)) + (x - t)) + rest;
  high = s;
}

// out_high[row] + out_low[row] = the sum of high[row, :] + low[row, :].
template <class T>
void compensated_sum(const T* high, const T* low, std::int64_t rows, std::int64_t count,
                     T* out_high, T* out_low) {
  constexpr int w = kWidth<T>;
  for (std::int64_t row = 0; row < rows; ++row, high += count, low += count) {
    Vec<T> lanes{}, rests{};
    std::int64_t i = 0;
    for (; i + w <= count; i += w) add_to(lanes, rests, load(high + i), load(low + i));
    T total = 0, rest = 0;
    for (int lane = 0; lane < w; ++lane) add_to<T>(total, rest, lanes[lane], rests[lane]);
    for (; i < count; ++i) add_to<T>(total, rest, high[i], low[i]);
    out_high[row] = total + rest;
    out_low[row] = rest - (out_high[row] - total);
  }
}

// out_high[row] + out_low[row] = the sum of a[row, :] (high[row, :] + low[row, :]).
template <class T>
void compensated_dot(const T* a, const T* high, const T* low, std::int64_t rows, std::int64_t count,
                     T* out_high, T* out_low) {
  for (std::int64_t row = 0; row < rows; ++row, a += count, high += count, low += count) {
    T total = 0, rest = 0;
    add_dot(a, high, count, total, rest);
    for (std::int64_t i = 0; i < count; ++i) rest += a[i] * low[i];
    out_high[row] = total + rest;
    out_low[row] = rest - (out_high[row] - total);
  }
}

// out_high + out_low = a b, of matrices [n, k] and [k, m] in two words.
template <class T>
void exact_product(const T* a_high, const T* a_low, const T* b_high, const T* b_low, std::int64_t n,
                   std::int64_t k, std::int64_t m, T* out_high, T* out_low) {
  if constexpr (std::is_same_v<T, float>) {  // products of floats are exact in double
    std::vector<double> b(k * m), row(m);
    for (std::int64_t i = 0; i < k * m; ++i) b[i] = double(b_high[i]) + b_low[i];
    for (std::int64_t i = 0; i < n; ++i, out_high += m, out_low += m) {
      std::fill(row.begin(), row.end(), 0.0);
      for (std::int64_t l = 0; l < k; ++l) {
        const double factor = double(a_high[i * k + l]) + a_low[i * k + l];
        for (std::int64_t j = 0; j < m; ++j) row[j] += factor * b[l * m + j];
      }
      for (std::int64_t j = 0; j < m; ++j) {
        out_high[j] = static_cast<float>(row[j]);
        out_low[j] = static_cast<float>(row[j] - out_high[j]);
      }
    }
  } else {
    std::vector<T> column(k);
    for (std::int64_t j = 0; j < m; ++j) {
      for (std::int64_t l = 0; l < k; ++l) column[l] = b_high[l * m + j];
      for (std::int64_t i = 0; i < n; ++i) {
        T total = 0, rest = 0;
        add_dot(a_high + i * k, column.data(), k, total, rest);
        for (std::int64_t l = 0; l < k; ++l)
          rest += a_low[i * k + l] * column[l] + a_high[i * k + l] * b_low[l * m + j];
        out_high[i * m + j] = total + rest;
        out_low[i * m + j] = rest - (out_high[i * m + j] - total);
      }
    }
  }
}

}  // namespace pyscf_ipu::ISA
