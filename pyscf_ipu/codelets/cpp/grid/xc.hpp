// The two linear-algebra halves of the exchange-correlation energy and matrix; see
// grid/xc_matrix.py.
//
// Both walk through the AO values [T, D, N, Gb] once, kColumns vectors of points at a time: the
// values of such a band, and what is made of them, stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bands.hpp"
#include "gemm.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Density and gradient of one band, from the AOs that do not vanish there; panels holds kRows rows
// of the density matrix, interleaved.
template <class T, int kPlanes>
void band_density(const Band<T>& ao, const Live<T>& live, const Coming<T>& coming, const T* panels,
                  std::int64_t n, Vec<T> (&sums)[kPlanes][kColumns]) {
  for (auto& plane : sums)
    for (auto& v : plane) v = Vec<T>{};
  const std::int32_t* rows = live.rows.data();
  std::int64_t asked = 0;
  for (const std::int32_t panel : live.panels) {
    const T* a = panels + panel * n * kRows;
    coming.prefetch(kPlanes, asked);
    asked += kRows;
    Vec<T> product[kRows][kColumns];
    multiply<T, kColumns>([=](int r, std::int64_t k) { return a[rows[k] * kRows + r]; },
                          [=](std::int64_t k) { return ao.at(0, rows[k]); },
                          std::int64_t(live.rows.size()), product);
    const std::int64_t first = panel * kRows;
    for (int r = 0; r < kRows && first + r < n; ++r)
#pragma GCC unroll 4
      for (int d = 0; d < kPlanes; ++d)
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c)
          sums[d][c] += product[r][c] * load(ao.at(d, first + r) + c * kWidth<T>);
  }
  for (int d = 1; d < kPlanes; ++d)
    for (auto& v : sums[d]) v *= T(2);
}

// out[T, D, Gb]: density and its gradient, from density[N, N].
template <class T, int kPlanes>
void density_of(const AoBlocks<T>& ao, const T* density, T* out) {
  const std::int64_t n = ao.n, padded = (n + kRows - 1) / kRows * kRows;
  std::vector<T> panels(padded * n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      panels[i / kRows * kRows * n + k * kRows + i % kRows] = density[i * n + k];
  each_band(ao, [&](std::int64_t t, std::int64_t g, std::int64_t count, const Band<T>& band,
                    const Live<T>& live, const Coming<T>& coming) {
    Vec<T> sums[kPlanes][kColumns];
    band_density(band, live, coming, panels.data(), n, sums);
    for (int d = 0; d < kPlanes; ++d)
      std::memcpy(out + (t * kPlanes + d) * ao.points + g, sums[d], count * sizeof(T));
  });
}

template <class T>
void xc_density(const AoBlocks<T>& ao, const T* density, T* out) {
  (ao.planes == 4 ? density_of<T, 4> : density_of<T, 1>)(ao, density, out);
}

// weighted[g][j] = sum_d factors[d][g] ao[d][j][g] of one band, transposed for the product, for
// the vectors of j that do not vanish, one after another.
template <class T, int kPlanes>
void band_weighted(const Band<T>& ao, const Live<T>& live,
                   const Vec<T> (&factors)[kPlanes][kColumns], std::int64_t n, std::int64_t width,
                   T* weighted) {
  constexpr int w = kWidth<T>;
  for (const std::int32_t vector : live.vectors) {
    const std::int64_t j = std::int64_t(vector) * w;
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
      for (int r = 0; r < w; ++r) store<T>(weighted + (c * w + r) * width, rows[r]);
    }
    weighted += w;
  }
}

// total[i][j] += sum_g ao[i][g] weighted[g][j] for the kC vectors of j in `vectors`.
template <class T, int kC>
void add_product(const Band<T>& ao, const Live<T>& live, const std::int32_t* vectors,
                 const T* weighted, std::int64_t width, T* total) {
  const auto count = std::int64_t(live.rows.size());
  for (std::int64_t i = 0; i < count; i += kRows) {
    const T* a[kRows];
    for (int r = 0; r < kRows; ++r) a[r] = ao.at(0, live.row(i, r));
    Vec<T> sums[kRows][kC];
    multiply<T, kC>([&](int r, std::int64_t k) { return a[r][k]; },
                    [=](std::int64_t k) { return weighted + k * width; }, kBand<T>, sums);
    for (int r = 0; r < kRows && i + r < count; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) {
        T* to = total + live.rows[i + r] * width + vectors[c] * kWidth<T>;
        store<T>(to, load(to) + sums[r][c]);
      }
  }
}

// The same for up to `columns` vectors of j; returns for how many.
template <class T>
std::int64_t add_columns(std::int64_t columns, const Band<T>& ao, const Live<T>& live,
                         const std::int32_t* vectors, const T* weighted, std::int64_t width,
                         T* total) {
  if constexpr (kColumns == 4) {
    if (columns >= 4) return add_product<T, 4>(ao, live, vectors, weighted, width, total), 4;
    if (columns == 3) return add_product<T, 3>(ao, live, vectors, weighted, width, total), 3;
  }
  if (columns >= 2) return add_product<T, 2>(ao, live, vectors, weighted, width, total), 2;
  return add_product<T, 1>(ao, live, vectors, weighted, width, total), 1;
}

// total[i][j] += the part of one band, for i and j that do not vanish.
template <class T, int kPlanes>
void add_band(const Band<T>& band, const Live<T>& live, const Coming<T>& coming, const T* factors,
              std::int64_t plane, std::int64_t count, std::int64_t n, std::int64_t width,
              T* weighted, T* total) {
  Vec<T> f[kPlanes][kColumns] = {};
  for (int d = 0; d < kPlanes; ++d) std::memcpy(f[d], factors + d * plane, count * sizeof(T));
  band_weighted<T, kPlanes>(band, live, f, n, width, weighted);
  for (std::int64_t i = 0; i < n; i += kRows) coming.prefetch(kPlanes, i);
  const auto vectors = std::int64_t(live.vectors.size());
  for (std::int64_t j = 0; j < vectors;) {
    // A last single column would be slow: 5 = 3 + 2.
    const std::int64_t left = vectors - j;
    const std::int64_t take = left == kColumns + 1 ? left / 2 + 1 : left;
    j += add_columns(take, band, live, live.vectors.data() + j, weighted + j * kWidth<T>, width,
                     total);
  }
}

// out[N, N] = sum_g ao[0][i][g] sum_d factors[d][g] ao[d][j][g]; factors[T, D, Gb].
//
// Sums over points go in three levels, band, block and grid, so that float32 keeps its digits.
template <class T, int kPlanes>
void potential_of(const AoBlocks<T>& ao, const T* factors, T* out) {
  const std::int64_t n = ao.n, points = ao.points;
  const std::int64_t width = (n + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  std::vector<T> weighted(kBand<T> * width), block(n * width);
  std::fill_n(out, n * n, T(0));
  each_band(ao, [&](std::int64_t t, std::int64_t g, std::int64_t count, const Band<T>& band,
                    const Live<T>& live, const Coming<T>& coming) {
    if (g == 0) std::fill(block.begin(), block.end(), T(0));
    add_band<T, kPlanes>(band, live, coming, factors + t * kPlanes * points + g, points, count, n,
                         width, weighted.data(), block.data());
    if (g + count < points) return;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) out[i * n + j] += block[i * width + j];
  });
}

template <class T>
void xc_potential(const AoBlocks<T>& ao, const T* factors, T* out) {
  (ao.planes == 4 ? potential_of<T, 4> : potential_of<T, 1>)(ao, factors, out);
}

// The two halves for the kinetic energy density, from the gradients of the AOs alone: the planes
// d = 1, 2 and 3 of ao[T, 4, N, Gb] are each what plane 0 is for the density.

// out[T, Gb] = 1/2 sum_d sum_ij ao[d][i][g] density[i][j] ao[d][j][g].
template <class T>
void xc_kinetic_density(const AoBlocks<T>& ao, const T* density, T* out) {
  std::vector<T> part(ao.points);
  std::fill_n(out, ao.tiles * ao.points, T(0));
  for (std::int64_t t = 0; t < ao.tiles; ++t)
    for (std::int64_t d = 1; d < ao.planes; ++d) {
      density_of<T, 1>(ao.plane(t, d), density, part.data());
      for (std::int64_t g = 0; g < ao.points; ++g) out[t * ao.points + g] += T(0.5) * part[g];
    }
}

// out[N, N] = sum_d sum_g factors[g] ao[d][i][g] ao[d][j][g]; factors[T, Gb].
template <class T>
void xc_kinetic_potential(const AoBlocks<T>& ao, const T* factors, T* out) {
  std::vector<T> part(ao.n * ao.n);
  std::fill_n(out, ao.n * ao.n, T(0));
  for (std::int64_t t = 0; t < ao.tiles; ++t)
    for (std::int64_t d = 1; d < ao.planes; ++d) {
      potential_of<T, 1>(ao.plane(t, d), factors + t * ao.points, part.data());
      for (std::int64_t i = 0; i < ao.n * ao.n; ++i) out[i] += part[i];
    }
}

}  // namespace pyscf_ipu::ISA
