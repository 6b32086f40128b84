// What the exchange-correlation matrix does to some orbitals; see kohn_sham/nearby.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bands.hpp"
#include "gemm.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// On a chunk, the factors of AOs and of their gradients in the product of the matrix with each column:
// out[D, kScreened, width], from psi = C^T ao and factors[moments][kScreened].
template <class T, int kPlanes, bool kTau>
void weigh_columns(const Chunk<T>& chunk, const ColumnsOfChunk<T>& columns, std::int64_t width,
                   const T (&factors)[kPlanes + kTau][kScreened], T* out) {
  constexpr std::int64_t w = kWidth<T>;
  for (std::int64_t o = 0; o < columns.columns(); o += kRows)
    by_number<kRows>(columns.columns() - o, [&](auto rows) {
      for (std::int64_t band = 0; band < kScreened; band += kBand<T>) {
        Vec<T> psi[kPlanes][rows][kColumns];
        for (int d = 0; d < kPlanes; ++d) columns.values(chunk, o, d, band, psi[d]);
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < kColumns; ++c) {
            const std::int64_t g = band + c * w;
            const auto factor = [&](int d) { return load(factors[d] + g); };
            const auto put = [&](int d, Vec<T> v) {
              for (int lane = 0; lane < w; ++lane)
                out[(d * kScreened + g + lane) * width + o + r] = v[lane];
            };
            Vec<T> first = T(2) * factor(0) * psi[0][r][c];
            for (int d = 1; d < kPlanes; ++d) {
              first += factor(d) * psi[d][r][c];
              Vec<T> other = factor(d) * psi[0][r][c];
              if constexpr (kTau) other += T(2) * factor(kPlanes) * psi[d][r][c];
              put(d, other);
            }
            put(0, first);
          }
      }
    });
}

// out[r][..] = sum over points and planes of AO i + r times `weighted`, for kC vectors of columns.
template <class T, int kR, int kC, int kPlanes>
void tile_of_projection(const Chunk<T>& chunk, std::int64_t i, const T* weighted,
                        std::int64_t width, T* out) {
  Vec<T> sums[kR][kC] = {};
  for (int d = 0; d < kPlanes; ++d) {
    const T* from = weighted + d * kScreened * width;
    add_product<T, kR, kC>([&](int r, std::int64_t k) { return chunk.at(d, i + r)[k]; },
                           [&](std::int64_t k) { return from + k * width; }, kScreened, sums);
  }
  for (int r = 0; r < kR; ++r)
    for (int c = 0; c < kC; ++c) store<T>(out + r * width + c * kWidth<T>, sums[r][c]);
}

// out[N, N]: its first columns are the products of the matrix that factors[T, moments, Gb] make with
// the columns of `density`; the others are 0.  Sums over a chunk's points are in T.
template <class T, int kPlanes, bool kTau>
void projection_of(const AoBlocks<T>& ao, const T* factors, const DensityColumns<T>& density,
                   double* out) {
  constexpr std::int64_t w = kWidth<T>, moments = kPlanes + kTau;
  const std::int64_t n = ao.n, width = (density.count + w - 1) / w * w;
  std::vector<T> weighted(kPlanes * kScreened * width, T(0)), packed(kRows * width);
  ColumnsOfChunk<T> columns(density);
  std::fill_n(out, n * n, 0.0);
  each_chunk(ao, [&](std::int64_t t, std::int64_t g, std::int64_t points, const Chunk<T>& chunk) {
    alignas(64) T own[moments][kScreened] = {};
    for (int d = 0; d < moments; ++d)
      std::copy_n(factors + (t * moments + d) * ao.points + g, points, own[d]);
    columns.choose(chunk);
    weigh_columns<T, kPlanes, kTau>(chunk, columns, width, own, weighted.data());
    for (std::int64_t i = 0; i < chunk.count; i += kRows)
      by_number<kRows>(chunk.count - i, [&](auto rows) {
        for (std::int64_t j = 0; j < width;)
          by_number<kColumns>((width - j) / w, [&](auto vectors) {
            tile_of_projection<T, rows, vectors, kPlanes>(chunk, i, weighted.data() + j, width,
                                                          packed.data() + j);
            j += vectors * w;
          });
        for (int r = 0; r < rows; ++r)
          for (std::int64_t o = 0; o < density.count; ++o)
            out[chunk.aos[i + r] * n + o] += packed[r * width + o];
      });
  });
}

template <class T>
void xc_projection(const AoBlocks<T>& ao, const T* factors, const DensityColumns<T>& density,
                   std::int64_t moments, double* out) {
  (moments == 5   ? projection_of<T, 4, true>
   : moments == 4 ? projection_of<T, 4, false>
                  : projection_of<T, 1, false>)(ao, factors, density, out);
}

}  // namespace pyscf_ipu::ISA
