// A small matrix product in registers, and the transpose of a square of vectors.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "simd.hpp"

namespace pyscf_ipu::ISA {

// kRows x kColumns vectors of sums fit in the register file with the operands of one step.
constexpr int kRows = 6;
constexpr int kColumns = VECTOR_BYTES == 64 ? 4 : 2;

// sums[r][c] += sum_k a(r, k) b[k][c], n terms; b(k) is where row k of b starts.
template <class T, int kR, int kC, class A, class B>
inline __attribute__((always_inline)) void add_product(A a, B b, std::int64_t n,
                                                       Vec<T> (&sums)[kR][kC]) {
  for (std::int64_t k = 0; k < n; ++k) {
    const T* from = b(k);
    Vec<T> row[kC];
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) row[c] = load(from + c * kWidth<T>);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const Vec<T> factor = splat<T>(a(r, k));
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) sums[r][c] += factor * row[c];
    }
  }
}

// The same from zero on.
template <class T, int kR, int kC, class A, class B>
inline __attribute__((always_inline)) void multiply(A a, B b, std::int64_t n,
                                                    Vec<T> (&sums)[kR][kC]) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) sums[r][c] = Vec<T>{};
  add_product<T, kR, kC>(a, b, n, sums);
}

// Calls f with a constant: the number itself, 1 or more, or kMost if it is larger.
template <int kMost, class F>
inline __attribute__((always_inline)) void by_number(std::int64_t number, F f) {
  if constexpr (kMost > 1)
    if (number < kMost) return by_number<kMost - 1>(number, f);
  f(std::integral_constant<int, kMost>());
}

// Swaps, of two rows `step` apart, the off-diagonal blocks of size `step`.
template <class T, int step, std::size_t... i>
inline void exchange(Vec<T>& a, Vec<T>& b, std::index_sequence<i...>) {
  constexpr int width = kWidth<T>;
  const Vec<T> low = pick<T, (i & step ? int(i) + width - step : int(i))...>(a, b);
  b = pick<T, (i & step ? int(i) + width : int(i) + step)...>(a, b);
  a = low;
}

template <class T, int step = 1>
inline void transpose(Vec<T> (&rows)[kWidth<T>]) {
#pragma GCC unroll 16
  for (int r = 0; r < kWidth<T>; ++r)
    if (!(r & step))
      exchange<T, step>(rows[r], rows[r + step], std::make_index_sequence<kWidth<T>>());
  if constexpr (2 * step < kWidth<T>) transpose<T, 2 * step>(rows);
}

}  // namespace pyscf_ipu::ISA
