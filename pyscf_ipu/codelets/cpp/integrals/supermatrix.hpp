// The supermatrix G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] as its half L, L + L^T = G: the
// codelet "supermatrix".
//
// For a fixed i, the rows (ik|..) of all k <= i are unpacked into a slab [k][j][l], whose parts
// with j, l <= i fit in a second-level cache of 2 MB up to 80 AOs in float32.  Every L[ij,kl] of this i
// then reads the slab with unit stride, or a face of it and that face's transpose, which fit in a
// first-level cache of 48 KB up to 110 AOs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace pyscf_ipu::ISA {

// coulomb[k][l] + scale (face[k][l] + face[l][k]), the lower triangle packed by rows; of row
// `last` only the first `last_width` elements.
template <class T>
inline void mix(const T* coulomb, const T* face, std::int64_t n, std::int64_t last,
                std::int64_t last_width, T scale, T* out) {
  for (std::int64_t k = 0; k <= last; ++k) {
    const std::int64_t width = k == last ? last_width : k + 1;
    const T *row = coulomb + k * n, *across = face + k * n, *down = face + k;
    for (std::int64_t l = 0; l < width; ++l) out[l] = row[l] + scale * (across[l] + down[l * n]);
    out += width;
  }
}

template <class T>
void unpack(const T* row, const std::int32_t* row_of, std::int64_t n, std::int64_t i, T* to) {
  for (std::int64_t j = 0; j <= i; ++j) {
    const std::int32_t* at = row_of + j * n;
    T* out = to + j * n;
    for (std::int64_t l = 0; l <= i; ++l) out[l] = row[at[l]];
  }
}

// out[padded_rows, P]; the rows behind P and the upper triangle are zero.
template <class T>
void supermatrix(const T* coulomb, const T* exchange, const std::int32_t* row_of, std::int64_t n,
                 std::int64_t rows, T fraction, std::int64_t padded_rows, T* out) {
  const std::int64_t pairs = n * (n + 1) / 2, face = n * n;
  const T scale = T(-0.25) * fraction;
  const bool one = coulomb == exchange;
  std::vector<T> slab(n * face), own(one ? 0 : face), across(face);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k <= i; ++k)
      unpack(exchange + std::int64_t(row_of[i * n + k]) * rows, row_of, n, i, slab.data() + k * face);
    for (std::int64_t j = 0; j <= i; ++j) {
      for (std::int64_t k = 0; k <= i; ++k)
        std::copy_n(slab.data() + k * face + j * n, i + 1, across.data() + k * n);
      if (!one) unpack(coulomb + std::int64_t(row_of[i * n + j]) * rows, row_of, n, i, own.data());
      const std::int64_t ij = i * (i + 1) / 2 + j;
      T* row = out + ij * pairs;
      mix(one ? slab.data() + j * face : own.data(), across.data(), n, i, j + 1, scale, row);
      row[ij] *= T(0.5);
      std::fill(row + ij + 1, row + pairs, T(0));
    }
  }
  std::fill(out + pairs * pairs, out + padded_rows * pairs, T(0));
}

}  // namespace pyscf_ipu::ISA
