// Integrals over the rows of the tile plan times columns of a density, and weights of these rows from
// such columns: the codelets "fitting_columns" and "fitting_weights".
//
// The functions of a row lie side by side in both, so they are the lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gemm.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

constexpr int kColumnRows = VECTOR_BYTES == 64 ? 12 : kRows;
constexpr int kColumnVectors = 2;

// Calls f(first, number of vectors) for stretches of n elements, and rest(i) for those that are left.
template <class T, class F, class Rest>
inline void by_vectors(std::int64_t n, F f, Rest rest) {
  constexpr std::int64_t wide = kColumnVectors * kWidth<T>;
  std::int64_t i = 0;
  for (; i + wide <= n; i += wide) f(i, std::integral_constant<int, kColumnVectors>());
  for (; i + kWidth<T> <= n; i += kWidth<T>) f(i, std::integral_constant<int, 1>());
  for (; i < n; ++i) rest(i);
}

// out[a, i, P] = sum_b C[b, i] (ab|P).  Rows are copied first, a few at a time: they are read as they
// lie in memory, and used from the cache.
template <class T>
void fitting_columns(const ColumnsProblem<T>& problem, const T* integrals, T* out) {
  constexpr std::int64_t kCopied = 64, wide = kColumnVectors * kWidth<T>;
  const std::int64_t n = problem.n, width = problem.width, functions = problem.functions;
  const std::int64_t padded = (functions + wide - 1) / wide * wide;
  std::vector<Vec<T>> storage(kCopied * padded / kWidth<T>), sums_of(width * padded / kWidth<T>);
  T *rows = reinterpret_cast<T*>(storage.data()), *total = reinterpret_cast<T*>(sums_of.data());
  for (std::int64_t a = 0; a < n; ++a) {
    std::fill_n(total, width * padded, T(0));
    for (std::int64_t first = 0; first < n; first += kCopied) {
      const std::int64_t count = std::min(kCopied, n - first);
      for (std::int64_t b = 0; b < count; ++b)
        std::copy_n(integrals + problem.row[a * n + first + b] * functions, functions, rows + b * padded);
      for (std::int64_t i = 0; i < problem.used; i += kColumnRows)
        by_number<kColumnRows>(problem.used - i, [&](auto number) {
          constexpr int kR = number;
          const T* c = problem.columns + first * width + i;
          for (std::int64_t f = 0; f < padded; f += wide) {
            T* to = total + i * padded + f;
            Vec<T> sums[kR][kColumnVectors];
            multiply<T>([&](int r, std::int64_t b) { return c[b * width + r]; },
                        [&](std::int64_t b) { return rows + b * padded + f; }, count, sums);
#pragma GCC unroll 16
            for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
              for (int v = 0; v < kColumnVectors; ++v) {
                T* at = to + r * padded + v * kWidth<T>;
                store(at, load(at) + sums[r][v]);
              }
          }
        });
    }
    for (std::int64_t i = 0; i < width; ++i)
      std::copy_n(total + i * padded, functions, out + (a * width + i) * functions);
  }
}

// Adds to weights[ab, P] sum_i C[a, i] w[b, i, P] of both orders of a and b, which over all columns
// are the same.
template <class T>
void fitting_weights(const ColumnsProblem<T>& problem, const T* w, T* weights) {
  const std::int64_t n = problem.n, width = problem.width, functions = problem.functions;
  std::vector<T> twice(n * width);
  for (std::int64_t k = 0; k < n * width; ++k) twice[k] = 2 * problem.columns[k];
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t first = b; first < n; first += kColumnRows)
      by_number<kColumnRows>(n - first, [&](auto rows) {
        constexpr int kHere = rows;
        T* to[kHere];
        const T* c[kHere];
        for (int r = 0; r < kHere; ++r) {
          const std::int64_t a = first + r;
          to[r] = weights + problem.row[a * n + b] * functions;
          c[r] = (a == b ? problem.columns : twice.data()) + a * width;
        }
        const T* from = w + b * width * functions;
        by_vectors<T>(
            functions,
            [&](std::int64_t f, auto vectors) {
              constexpr int kR = rows, kV = vectors;
              Vec<T> sums[kR][kV];
#pragma GCC unroll 16
              for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < kV; ++v) sums[r][v] = load(to[r] + f + v * kWidth<T>);
              add_product<T, kR, kV>([&](int r, std::int64_t i) { return c[r][i]; },
                                     [&](std::int64_t i) { return from + i * functions + f; },
                                     problem.used, sums);
#pragma GCC unroll 16
              for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < kV; ++v) store(to[r] + f + v * kWidth<T>, sums[r][v]);
            },
            [&](std::int64_t f) {
              for (int r = 0; r < rows; ++r)
                for (std::int64_t i = 0; i < problem.used; ++i)
                  to[r][f] += c[r][i] * from[i * functions + f];
            });
      });
}

}  // namespace pyscf_ipu::ISA
