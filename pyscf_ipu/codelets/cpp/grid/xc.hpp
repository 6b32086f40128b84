// The two linear-algebra halves of the exchange-correlation energy and matrix; see
// grid/xc_matrix.py.
//
// Both walk through the AO values [T, D, N, Gb] once, kColumns vectors of points at a time: the
// values of such a band, and what is made of them, stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gemm.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Points of a band.
template <class T>
constexpr std::int64_t kBand = kColumns * kWidth<T>;

// The AO values of one band: row i of plane d starts at at(d, i).
template <class T>
struct Band {
  const T* ao;
  std::int64_t plane, row;
  const T* at(std::int64_t d, std::int64_t i) const { return ao + d * plane + i * row; }
};

// The band of `count` points at `ao`; an incomplete one is copied, with zeros beyond its end.
template <class T>
Band<T> band_at(const T* ao, std::int64_t planes, std::int64_t n, std::int64_t points,
                  std::int64_t count, std::vector<T>& scratch) {
  if (count == kBand<T>) return {ao, n * points, points};
  scratch.assign(planes * n * kBand<T>, T(0));
  for (std::int64_t i = 0; i < planes * n; ++i)
    std::copy_n(ao + i * points, count, scratch.data() + i * kBand<T>);
  return {scratch.data(), n * kBand<T>, kBand<T>};
}

// Asks for the rows of the band that comes after this one, which the hardware does not foresee.
template <class T>
inline void prefetch(const Band<T>& band, std::int64_t planes, std::int64_t i) {
  for (std::int64_t d = 0; d < planes; ++d)
    for (std::int64_t c = 0; c < kColumns; ++c)
      __builtin_prefetch(band.at(d, i) + kBand<T> + c * kWidth<T>, 0, 2);
}

// Density and gradient of one band; panels holds kRows rows of the density matrix, interleaved.
template <class T, int kPlanes>
void band_density(const Band<T>& ao, const T* panels, std::int64_t n,
                   Vec<T> (&sums)[kPlanes][kColumns]) {
  for (auto& plane : sums)
    for (auto& v : plane) v = Vec<T>{};
  for (std::int64_t i = 0; i < n; i += kRows) {
    const T* a[kRows];
    for (int r = 0; r < kRows; ++r) a[r] = panels + i * n + r;
    Vec<T> product[kRows][kColumns];
    multiply<T, kColumns>(a, kRows, ao.at(0, 0), ao.row, n, product);
    for (int r = 0; r < kRows && i + r < n; ++r) {
      prefetch(ao, kPlanes, i + r);
#pragma GCC unroll 4
      for (int d = 0; d < kPlanes; ++d)
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c)
          sums[d][c] += product[r][c] * load(ao.at(d, i + r) + c * kWidth<T>);
    }
  }
  for (int d = 1; d < kPlanes; ++d)
    for (auto& v : sums[d]) v *= T(2);
}

// out[T, D, Gb]: density and its gradient from ao[T, D, N, Gb] and density[N, N].
template <class T, int kPlanes>
void density_of(const T* ao, const T* density, std::int64_t tiles, std::int64_t n,
                std::int64_t points, T* out) {
  const std::int64_t padded = (n + kRows - 1) / kRows * kRows;
  std::vector<T> panels(padded * n), scratch;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      panels[i / kRows * kRows * n + k * kRows + i % kRows] = density[i * n + k];
  for (std::int64_t t = 0; t < tiles; ++t)
    for (std::int64_t g = 0; g < points; g += kBand<T>) {
      const std::int64_t count = std::min(kBand<T>, points - g);
      const T* block = ao + t * kPlanes * n * points;
      Vec<T> sums[kPlanes][kColumns];
      band_density(band_at(block + g, kPlanes, n, points, count, scratch), panels.data(), n, sums);
      for (int d = 0; d < kPlanes; ++d)
        std::memcpy(out + (t * kPlanes + d) * points + g, sums[d], count * sizeof(T));
    }
}

template <class T>
void xc_density(const T* ao, const T* density, std::int64_t tiles, std::int64_t planes,
                std::int64_t n, std::int64_t points, T* out) {
  (planes == 4 ? density_of<T, 4> : density_of<T, 1>)(ao, density, tiles, n, points, out);
}

// weighted[g][j] = sum_d factors[d][g] ao[d][j][g] of one band, transposed for the product.
template <class T, int kPlanes>
void band_weighted(const Band<T>& ao, const Vec<T> (&factors)[kPlanes][kColumns], std::int64_t n,
                    std::int64_t width, T* weighted) {
  constexpr int w = kWidth<T>;
  for (std::int64_t j = 0; j < n; j += w)
    for (int c = 0; c < kColumns; ++c) {
      Vec<T> rows[w];
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) {
        rows[r] = Vec<T>{};
        if (j + r >= n) continue;
        for (int d = 0; d < kPlanes; ++d) rows[r] += factors[d][c] * load(ao.at(d, j + r) + c * w);
      }
      transpose<T>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) store<T>(weighted + (c * w + r) * width + j, rows[r]);
    }
}

// total[i][j] += sum_g ao[i][g] weighted[g][j] for kC vectors of j.
template <class T, int kC>
void add_product(const Band<T>& ao, const T* weighted, std::int64_t n, std::int64_t width,
                 T* total) {
  for (std::int64_t i = 0; i < n; i += kRows) {
    const T* a[kRows];
    for (int r = 0; r < kRows; ++r) a[r] = ao.at(0, std::min(i + r, n - 1));
    Vec<T> sums[kRows][kC];
    multiply<T, kC>(a, 1, weighted, width, kBand<T>, sums);
    for (int r = 0; r < kRows && i + r < n; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) {
        T* to = total + (i + r) * width + c * kWidth<T>;
        store<T>(to, load(to) + sums[r][c]);
      }
  }
}

// The same for up to `columns` vectors of j; returns for how many.
template <class T>
std::int64_t add_columns(std::int64_t columns, const Band<T>& ao, const T* weighted, std::int64_t n,
                         std::int64_t width, T* total) {
  if constexpr (kColumns == 4) {
    if (columns >= 4) return add_product<T, 4>(ao, weighted, n, width, total), 4;
    if (columns == 3) return add_product<T, 3>(ao, weighted, n, width, total), 3;
  }
  if (columns >= 2) return add_product<T, 2>(ao, weighted, n, width, total), 2;
  return add_product<T, 1>(ao, weighted, n, width, total), 1;
}

// out[N, N] = sum_g ao[0][i][g] sum_d factors[d][g] ao[d][j][g]; factors[T, D, Gb].
//
// Sums over points go in three levels, band, block and grid, so that float32 keeps its digits.
template <class T, int kPlanes>
void potential_of(const T* ao, const T* factors, std::int64_t tiles, std::int64_t n,
                  std::int64_t points, T* out) {
  constexpr int w = kWidth<T>;
  const std::int64_t width = (n + w - 1) / w * w;
  std::vector<T> weighted(kBand<T> * width), block(n * width), scratch;
  std::fill_n(out, n * n, T(0));
  for (std::int64_t t = 0; t < tiles; ++t) {
    std::fill(block.begin(), block.end(), T(0));
    for (std::int64_t g = 0; g < points; g += kBand<T>) {
      const std::int64_t count = std::min(kBand<T>, points - g);
      Vec<T> f[kPlanes][kColumns] = {};
      for (int d = 0; d < kPlanes; ++d)
        std::memcpy(f[d], factors + (t * kPlanes + d) * points + g, count * sizeof(T));
      const T* start = ao + t * kPlanes * n * points + g;
      const Band<T> band = band_at(start, kPlanes, n, points, count, scratch);
      band_weighted<T, kPlanes>(band, f, n, width, weighted.data());
      for (std::int64_t i = 0; i < n; ++i) prefetch(band, kPlanes, i);
      for (std::int64_t j = 0; j < width;) {
        // A last single column would be slow: 5 = 3 + 2.
        const std::int64_t left = (width - j) / w;
        const std::int64_t take = left == kColumns + 1 ? left / 2 + 1 : left;
        j += w * add_columns(take, band, weighted.data() + j, n, width, block.data() + j);
      }
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) out[i * n + j] += block[i * width + j];
  }
}

template <class T>
void xc_potential(const T* ao, const T* factors, std::int64_t tiles, std::int64_t planes,
                  std::int64_t n, std::int64_t points, T* out) {
  (planes == 4 ? potential_of<T, 4> : potential_of<T, 1>)(ao, factors, tiles, n, points, out);
}

// The two halves for the kinetic energy density, from the gradients of the AOs alone: the planes
// d = 1, 2 and 3 of ao[T, 4, N, Gb] are each what plane 0 is for the density.

// out[T, Gb] = 1/2 sum_d sum_ij ao[d][i][g] density[i][j] ao[d][j][g].
template <class T>
void xc_kinetic_density(const T* ao, const T* density, std::int64_t tiles, std::int64_t planes,
                        std::int64_t n, std::int64_t points, T* out) {
  std::vector<T> part(tiles * points);
  std::fill_n(out, tiles * points, T(0));
  for (std::int64_t d = 1; d < planes; ++d)
    for (std::int64_t t = 0; t < tiles; ++t) {
      density_of<T, 1>(ao + (t * planes + d) * n * points, density, 1, n, points,
                       part.data() + t * points);
      for (std::int64_t g = t * points; g < (t + 1) * points; ++g) out[g] += T(0.5) * part[g];
    }
}

// out[N, N] = sum_d sum_g factors[g] ao[d][i][g] ao[d][j][g]; factors[T, Gb].
template <class T>
void xc_kinetic_potential(const T* ao, const T* factors, std::int64_t tiles, std::int64_t planes,
                          std::int64_t n, std::int64_t points, T* out) {
  std::vector<T> part(n * n);
  std::fill_n(out, n * n, T(0));
  for (std::int64_t t = 0; t < tiles; ++t)
    for (std::int64_t d = 1; d < planes; ++d) {
      potential_of<T, 1>(ao + (t * planes + d) * n * points, factors + t * points, 1, n, points,
                         part.data());
      for (std::int64_t i = 0; i < n * n; ++i) out[i] += part[i];
    }
}

}  // namespace pyscf_ipu::ISA
