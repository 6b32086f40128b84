// The two linear-algebra halves of the exchange-correlation energy and matrix; see
// grid/xc_matrix.py.
//
// Both walk through the AO values once, kScreened points at a time: the values of such a chunk, and
// what is made of them, stay in the first caches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bands.hpp"
#include "gemm.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Adds what kR AOs, from the first-th on, contribute to density and gradient of the band that starts
// at `ao`, a point of the chunk.
template <class T, int kPlanes, int kR>
void add_to_density(const Chunk<T>& chunk, const T* ao, std::int64_t first, const T* density,
                    std::int64_t n, Vec<T> (&sums)[kPlanes][kColumns]) {
  const T* a[kR];
  for (int r = 0; r < kR; ++r) a[r] = density + chunk.aos[first + r] * n;
  const std::int32_t* aos = chunk.aos;
  Vec<T> product[kR][kColumns];
  multiply<T, kR, kColumns>([&](int r, std::int64_t k) { return a[r][aos[k]]; },
                            [&](std::int64_t k) { return ao + k * chunk.row; }, chunk.count,
                            product);
#pragma GCC unroll 4
  for (int d = 0; d < kPlanes; ++d)
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        sums[d][c] += product[r][c] *
                      load(ao + d * chunk.plane + (first + r) * chunk.row + c * kWidth<T>);
}

// out[T, D, Gb]: density and its gradient, from density[N, N].
template <class T, int kPlanes>
void density_of(const AoBlocks<T>& ao, const T* density, T* out) {
  each_chunk(ao, [&](std::int64_t t, std::int64_t g, std::int64_t points, const Chunk<T>& chunk) {
    for (std::int64_t band = 0; band < points; band += kBand<T>) {
      Vec<T> sums[kPlanes][kColumns] = {};
      for (std::int64_t i = 0; i < chunk.count; i += kRows)
        by_number<kRows>(chunk.count - i, [&](auto rows) {
          add_to_density<T, kPlanes, rows>(chunk, chunk.ao + band, i, density, ao.n, sums);
        });
      for (int d = 1; d < kPlanes; ++d)
        for (auto& v : sums[d]) v *= T(2);
      const std::int64_t count = std::min(kBand<T>, points - band);
      for (int d = 0; d < kPlanes; ++d)
        std::memcpy(out + (t * kPlanes + d) * ao.points + g + band, sums[d], count * sizeof(T));
    }
  });
}

template <class T>
void xc_density(const AoBlocks<T>& ao, const T* density, T* out) {
  (ao.planes == 4 ? density_of<T, 4> : density_of<T, 1>)(ao, density, out);
}

// weighted[g][k] = sum_d factors[d][g] ao[d][k][g] on kScreened points, transposed for the product;
// up to a whole vector of k, whose last AO is repeated.  Values are read in order, a row at a time.
template <class T, int kPlanes>
void weigh(const Chunk<T>& chunk, const T (&factors)[kPlanes][kScreened], std::int64_t width,
           T* weighted) {
  constexpr int w = kWidth<T>;
  alignas(64) T sums[w][kScreened];
  for (std::int64_t k = 0; k < chunk.count; k += w) {
    for (int r = 0; r < w; ++r) {
      const T* from = chunk.at(0, std::min(k + r, chunk.count - 1));
      for (std::int64_t g = 0; g < kScreened; g += w) {
        Vec<T> sum = load(factors[0] + g) * load(from + g);
#pragma GCC unroll 4
        for (int d = 1; d < kPlanes; ++d)
          sum += load(factors[d] + g) * load(from + d * chunk.plane + g);
        store<T>(sums[r] + g, sum);
      }
    }
    for (std::int64_t g = 0; g < kScreened; g += w) {
      Vec<T> rows[w];
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) rows[r] = load(sums[r] + g);
      transpose<T>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) store<T>(weighted + (g + r) * width + k, rows[r]);
    }
  }
}

// packed[r][..] = sum_g ao[0][i + r][g] weighted[g][..] for kR rows and kC vectors.
template <class T, int kR, int kC>
void tile_of_matrix(const Chunk<T>& chunk, std::int64_t i, const T* weighted, std::int64_t width,
                    T* packed) {
  const T* a[kR];
  for (int r = 0; r < kR; ++r) a[r] = chunk.at(0, i + r);
  Vec<T> sums[kR][kC];
  multiply<T, kR, kC>([&](int r, std::int64_t g) { return a[r][g]; },
                      [=](std::int64_t g) { return weighted + g * width; }, kScreened, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) store<T>(packed + r * width + c * kWidth<T>, sums[r][c]);
}

// total[i][j] += sum_g ao[0][i][g] weighted[g][j] for the AOs of a chunk; packed[kRows, width].
template <class T>
void add_chunk(const Chunk<T>& chunk, const Spread<T>& spread, const T* weighted,
               std::int64_t width, T* packed, T* total) {
  const std::int64_t vectors = (chunk.count + kWidth<T> - 1) / kWidth<T>;
  for (std::int64_t i = 0; i < chunk.count; i += kRows)
    by_number<kRows>(chunk.count - i, [&](auto rows) {
      for (std::int64_t j = 0; j < vectors;) {
        // A last single vector would be slow: 5 = 3 + 2.
        const std::int64_t left = vectors - j;
        const std::int64_t take = left == kColumns + 1 ? left / 2 + 1 : left;
        by_number<kColumns>(take, [&](auto columns) {
          const std::int64_t at = j * kWidth<T>;
          tile_of_matrix<T, rows, columns>(chunk, i, weighted + at, width, packed + at);
          j += columns;
        });
      }
      for (int r = 0; r < rows; ++r)
        spread.add(packed + r * width, total + chunk.aos[i + r] * width);
    });
}

// Chunks whose parts of the matrix are added up before they go to the rest.
constexpr std::int64_t kChunks = 16;

// out[N, N] = sum_g ao[0][i][g] sum_d factors[d][g] ao[d][j][g]; factors[T, D, Gb].
//
// Sums over points go in three levels, chunk, kChunks and grid, so that float32 keeps its digits.
template <class T, int kPlanes>
void potential_of(const AoBlocks<T>& ao, const T* factors, T* out) {
  constexpr std::int64_t w = kWidth<T>;
  const std::int64_t n = ao.n, width = (n + w - 1) / w * w;
  std::vector<T> weighted(kScreened * width), packed(kRows * width + w), some(n * width, T(0));
  Spread<T> spread(width);
  std::int64_t chunks = 0;
  std::fill_n(out, n * n, T(0));
  const auto pass_on = [&] {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) out[i * n + j] += some[i * width + j];
  };
  each_chunk(ao, [&](std::int64_t t, std::int64_t g, std::int64_t points, const Chunk<T>& chunk) {
    if (chunk.count == 0) return;
    if (chunks++ % kChunks == 0 && chunks > 1) {
      pass_on();
      std::fill(some.begin(), some.end(), T(0));
    }
    alignas(64) T own[kPlanes][kScreened] = {};
    for (int d = 0; d < kPlanes; ++d)
      std::copy_n(factors + (t * kPlanes + d) * ao.points + g, points, own[d]);
    weigh<T, kPlanes>(chunk, own, width, weighted.data());
    spread.choose(chunk.aos, chunk.count);
    add_chunk(chunk, spread, weighted.data(), width, packed.data(), some.data());
  });
  pass_on();
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
  const std::int64_t size = ao.tiles * ao.points;
  std::vector<T> part(size);
  std::fill_n(out, size, T(0));
  for (std::int64_t d = 1; d < ao.planes; ++d) {
    density_of<T, 1>(ao.only(d), density, part.data());
    for (std::int64_t g = 0; g < size; ++g) out[g] += T(0.5) * part[g];
  }
}

// out[N, N] = sum_d sum_g factors[g] ao[d][i][g] ao[d][j][g]; factors[T, Gb].
template <class T>
void xc_kinetic_potential(const AoBlocks<T>& ao, const T* factors, T* out) {
  std::vector<T> part(ao.n * ao.n);
  std::fill_n(out, ao.n * ao.n, T(0));
  for (std::int64_t d = 1; d < ao.planes; ++d) {
    potential_of<T, 1>(ao.only(d), factors, part.data());
    for (std::int64_t i = 0; i < ao.n * ao.n; ++i) out[i] += part[i];
  }
}

}  // namespace pyscf_ipu::ISA
