// G d and the energy d G d / 2 from the half L of the supermatrix: the codelet "repulsion".
//
// L is read once: a block of rows contributes L d to its own elements and L^T d to all elements
// before.  The energy d L^T d is added up block by block in twice the working precision.  Blocks are
// short for its sake; for that of G d, some of them are added up before they go to the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "totals.hpp"

namespace pyscf_ipu::ISA {

// Four rows of L, of `width` elements each (zeros behind the diagonal): their products with d into
// y, and their L^T d into partial.
template <class T>
inline void four_rows(const T* l, std::int64_t pairs, std::int64_t width, const T* d, const T* own,
                      T* partial, T* y) {
  constexpr int w = kWidth<T>;
  Vec<T> dots[4]{};
  std::int64_t j = 0;
  for (; j + w <= width; j += w) {
    const Vec<T> dj = load(d + j);
    Vec<T> total = load(partial + j);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const Vec<T> x = load(l + r * pairs + j);
      dots[r] += x * dj;
      total += x * own[r];
    }
    store<T>(partial + j, total);
  }
  for (int r = 0; r < 4; ++r) {
    T rest = sum<T>(dots[r]);
    for (std::int64_t k = j; k < width; ++k) {
      rest += l[r * pairs + k] * d[k];
      partial[k] += l[r * pairs + k] * own[r];
    }
    y[r] += rest;
  }
}

constexpr std::int64_t kGroup = 64;  // rows

// l[padded_rows, P], padded_rows a multiple of `block` and block of 4; energy[2] in two words.
template <class T>
void repulsion(const T* l, const T* d, std::int64_t pairs, std::int64_t padded_rows,
               std::int64_t block, T* y, T* energy) {
  std::vector<T> weights(padded_rows, T(0)), result(padded_rows, T(0)), partial(padded_rows),
      group(padded_rows, T(0));
  std::copy_n(d, pairs, weights.begin());
  ExactDot<T> total;
  for (std::int64_t first = 0; first < padded_rows; first += block) {
    const std::int64_t width = std::min(first + block, pairs);
    std::fill_n(partial.begin(), width, T(0));
    for (std::int64_t i = first; i < first + block; i += 4)
      four_rows(l + i * pairs, pairs, std::min(i + 4, pairs), d, weights.data() + i,
                partial.data(), result.data() + i);
    for (std::int64_t k = 0; k < width; ++k) group[k] += partial[k];
    if ((first + block) % kGroup == 0 || first + block >= padded_rows)
      for (std::int64_t k = 0; k < width; ++k) {
        result[k] += group[k];
        group[k] = T(0);
      }
    total.add(partial.data(), d, width);
  }
  total.store(energy);
  std::copy_n(result.begin(), pairs, y);
}

}  // namespace pyscf_ipu::ISA
