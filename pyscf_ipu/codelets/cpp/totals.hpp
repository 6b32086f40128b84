// Sums in twice the working precision: the codelets "compensated_sum" and "compensated_dot".
#pragma once

#include <cmath>
#include <cstdint>

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

}  // namespace pyscf_ipu::ISA
