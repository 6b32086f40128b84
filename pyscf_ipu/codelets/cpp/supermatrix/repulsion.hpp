// G d and the energy d G d / 2 from the packed half L of the supermatrix: the codelet "repulsion".
//
// L is read once: a block of rows contributes L d to its own elements and L^T d to all elements
// before.  The energy d L^T d is added up block by block in twice the working precision.  Blocks are
// short for its sake.  An element of G d has as many terms as there are AO pairs, of which most
// cancel the attraction by the nuclei: so floats are added up in double, a group of blocks, or a
// stretch of a row, at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "totals.hpp"

namespace pyscf_ipu::ISA {

constexpr std::int64_t kBlock = 8, kGroup = 64;  // rows
constexpr std::int64_t kStretch = 512;           // elements of a row

// As many doubles as there are lanes.
template <class T>
struct Doubles {
  typedef double type __attribute__((vector_size(kWidth<T> * sizeof(double))));
};

// kN rows of L from row `first` on: their products with d into y, and their L^T d into partial.
template <class T, int kN>
inline void rows_of_half(const T* half, std::int64_t first, const T* d, T* partial, double* y) {
  using Wide = typename Doubles<T>::type;
  constexpr int w = kWidth<T>;
  const T* l[kN];
  for (int r = 0; r < kN; ++r) l[r] = half + (first + r) * (first + r + 1) / 2;
  Wide sums[kN]{};
  const std::int64_t whole = (first + 1) / w * w;
  for (std::int64_t j = 0; j < whole;) {
    Vec<T> dots[kN]{};
    for (const std::int64_t end = std::min(j + kStretch, whole); j < end; j += w) {
      const Vec<T> dj = load(d + j);
      Vec<T> total = load(partial + j);
#pragma GCC unroll 4
      for (int r = 0; r < kN; ++r) {
        const Vec<T> x = load(l[r] + j);
        dots[r] += x * dj;
        total += x * d[first + r];
      }
      store<T>(partial + j, total);
    }
    for (int r = 0; r < kN; ++r) sums[r] += __builtin_convertvector(dots[r], Wide);
  }
  for (int r = 0; r < kN; ++r) {
    double rest = 0;
    for (int lane = 0; lane < w; ++lane) rest += sums[r][lane];
    for (std::int64_t k = whole; k <= first + r; ++k) {
      rest += l[r][k] * d[k];
      partial[k] += l[r][k] * d[first + r];
    }
    y[first + r] += rest;
  }
}

// half[P (P + 1) / 2]; energy[2] in two words.
template <class T>
void repulsion(const T* half, const T* d, std::int64_t pairs, T* y, T* energy) {
  std::vector<T> partial(pairs + kWidth<T>), group(pairs, T(0));
  std::vector<double> sums(pairs, 0.0);
  ExactDot<T> total;
  for (std::int64_t first = 0; first < pairs; first += kBlock) {
    const std::int64_t end = std::min(first + kBlock, pairs);
    std::fill_n(partial.begin(), end, T(0));
    std::int64_t i = first;
    for (; i + 4 <= end; i += 4) rows_of_half<T, 4>(half, i, d, partial.data(), sums.data());
    for (; i < end; ++i) rows_of_half<T, 1>(half, i, d, partial.data(), sums.data());
    for (std::int64_t k = 0; k < end; ++k) group[k] += partial[k];
    if (end % kGroup == 0 || end == pairs)
      for (std::int64_t k = 0; k < end; ++k) {
        sums[k] += group[k];
        group[k] = T(0);
      }
    total.add(partial.data(), d, end);
  }
  std::copy(sums.begin(), sums.end(), y);
  total.store(energy);
}

}  // namespace pyscf_ipu::ISA
