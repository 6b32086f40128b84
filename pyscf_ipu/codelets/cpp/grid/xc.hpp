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

// out[g][k] = value(row k, g) on kScreened points, transposed for the product; up to a whole vector of
// k, whose last AO is repeated.  Values are read in order, a row at a time.
template <class T, class Value>
void transposed(const Chunk<T>& chunk, std::int64_t width, T* out, Value value) {
  constexpr int w = kWidth<T>;
  alignas(64) T rows_of[w][kScreened];
  for (std::int64_t k = 0; k < chunk.count; k += w) {
    for (int r = 0; r < w; ++r) {
      const T* from = chunk.at(0, std::min(k + r, chunk.count - 1));
      for (std::int64_t g = 0; g < kScreened; g += w) store<T>(rows_of[r] + g, value(from, g));
    }
    for (std::int64_t g = 0; g < kScreened; g += w) {
      Vec<T> rows[w];
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) rows[r] = load(rows_of[r] + g);
      transpose<T>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < w; ++r) store<T>(out + (g + r) * width + k, rows[r]);
    }
  }
}

// The right factors of the matrix on a chunk, each [kScreened, width]: AOs with all their factors and,
// for the kinetic energy density, each axis of their gradients with its own.
template <class T, int kPlanes, bool kTau>
class Weighted {
 public:
  explicit Weighted(std::int64_t width) : width(width), of_((kTau ? 4 : 1) * kScreened * width) {}

  void make(const Chunk<T>& chunk, const T (&factors)[kPlanes + kTau][kScreened]) {
    transposed(chunk, width, of_.data(), [&](const T* from, std::int64_t g) {
      Vec<T> sum = load(factors[0] + g) * load(from + g);
#pragma GCC unroll 4
      for (int d = 1; d < kPlanes; ++d)
        sum += load(factors[d] + g) * load(from + d * chunk.plane + g);
      return sum;
    });
    if constexpr (kTau)
      for (int d = 1; d < 4; ++d)
        transposed(chunk, width, of_.data() + d * kScreened * width,
                   [&](const T* from, std::int64_t g) {
                     return load(factors[kPlanes] + g) * load(from + d * chunk.plane + g);
                   });
  }

  // Row g of the d-th factor, from AO j on.
  const T* row(int d, std::int64_t g, std::int64_t j) const {
    return of_.data() + (d * kScreened + g) * width + j;
  }

  const std::int64_t width;

 private:
  std::vector<T> of_;
};

// AOs along the side of a square of the matrix.
template <class T>
constexpr std::int64_t kSquare = kColumns * kWidth<T>;

// packed[r][..] = half of the matrix for kR rows from AO i and kC vectors from AO j on.  The part of the
// kinetic energy density is symmetric: squares below the diagonal have it twice, those on it once,
// those above it not at all.
template <class T, int kR, int kC, int kPlanes, bool kTau>
void tile_of_matrix(const Chunk<T>& chunk, std::int64_t i, std::int64_t j,
                    const Weighted<T, kPlanes, kTau>& weighted, T* packed) {
  Vec<T> sums[kR][kC] = {};
  const auto add = [&](int d) {
    const T* a[kR];
    for (int r = 0; r < kR; ++r) a[r] = chunk.at(d, i + r);
    add_product<T, kR, kC>([&](int r, std::int64_t g) { return a[r][g]; },
                           [&](std::int64_t g) { return weighted.row(d, g, j); }, kScreened, sums);
  };
  if constexpr (kTau)
    if (j / kSquare<T> <= i / kSquare<T>) {
      for (int d = 1; d < 4; ++d) add(d);
      if (j / kSquare<T> < i / kSquare<T>)
        for (auto& row : sums)
          for (auto& v : row) v += v;
    }
  add(0);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) store<T>(packed + r * weighted.width + c * kWidth<T>, sums[r][c]);
}

// Adds half of the matrix for the AOs of a chunk to total[n, width]; packed[kRows, width].
template <class T, int kPlanes, bool kTau>
void add_chunk(const Chunk<T>& chunk, const Spread<T>& spread,
               const Weighted<T, kPlanes, kTau>& weighted, T* packed, T* total) {
  const std::int64_t width = weighted.width;
  const std::int64_t vectors = (chunk.count + kWidth<T> - 1) / kWidth<T>;
  for (std::int64_t i = 0; i < chunk.count;) {
    const std::int64_t to_edge = kTau ? kSquare<T> - i % kSquare<T> : chunk.count;
    by_number<kRows>(std::min(chunk.count - i, to_edge), [&](auto rows) {
      for (std::int64_t j = 0; j < vectors;) {
        // A last single vector would be slow: 5 = 3 + 2; but squares stay whole.
        const std::int64_t left = vectors - j;
        const std::int64_t take = !kTau && left == kColumns + 1 ? left / 2 + 1 : left;
        by_number<kColumns>(take, [&](auto columns) {
          const std::int64_t at = j * kWidth<T>;
          tile_of_matrix<T, rows, columns>(chunk, i, at, weighted, packed + at);
          j += columns;
        });
      }
      for (int r = 0; r < rows; ++r)
        spread.add(packed + r * width, total + chunk.aos[i + r] * width);
      i += rows;
    });
  }
}

// Chunks whose parts of the matrix are added up before they go to the rest.
constexpr std::int64_t kChunks = 16;

// out[N, N] = sum_g ao[0][i][g] sum_d factors[d][g] ao[d][j][g], and with kTau also
// sum_g factors[4][g] sum_d ao[d][i][g] ao[d][j][g], d = 1 to 3; factors[T, moments, Gb].
//
// Only the sum of `out` and its transpose is right: see tile_of_matrix.
//
// Sums over points go in three levels, chunk, kChunks and grid, so that float32 keeps its digits.
template <class T, int kPlanes, bool kTau, class Out>
void potential_of(const AoBlocks<T>& ao, const T* factors, Out* out) {
  constexpr std::int64_t w = kWidth<T>, moments = kPlanes + kTau;
  const std::int64_t n = ao.n, width = (n + w - 1) / w * w;
  std::vector<T> packed(kRows * width + w), some(n * width, T(0));
  Weighted<T, kPlanes, kTau> weighted(width);
  Spread<T> spread(width);
  std::int64_t chunks = 0;
  std::fill_n(out, n * n, Out(0));
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
    alignas(64) T own[moments][kScreened] = {};
    for (int d = 0; d < moments; ++d)
      std::copy_n(factors + (t * moments + d) * ao.points + g, points, own[d]);
    weighted.make(chunk, own);
    spread.choose(chunk.aos, chunk.count);
    add_chunk(chunk, spread, weighted, packed.data(), some.data());
  });
  pass_on();
}

template <class T, class Out>
void xc_potential(const AoBlocks<T>& ao, const T* factors, std::int64_t moments, Out* out) {
  (moments == 5   ? potential_of<T, 4, true, Out>
   : moments == 4 ? potential_of<T, 4, false, Out>
                  : potential_of<T, 1, false, Out>)(ao, factors, out);
}

// out[T, moments, Gb] from psi = C^T ao, column by column: the density sum s psi^2, its gradient and,
// with kTau, the kinetic energy density sum s |grad psi|^2 / 2.
template <class T, int kPlanes, bool kTau>
void moments_of(const AoBlocks<T>& ao, const DensityColumns<T>& density, T* out) {
  constexpr std::int64_t moments = kPlanes + kTau;
  ColumnsOfChunk<T> columns(density);
  each_chunk(ao, [&](std::int64_t t, std::int64_t g, std::int64_t points, const Chunk<T>& chunk) {
    columns.choose(chunk);
    for (std::int64_t band = 0; band < points; band += kBand<T>) {
      Vec<T> sums[moments][kColumns] = {};
      for (std::int64_t o = 0; o < columns.columns(); o += kRows)
        by_number<kRows>(columns.columns() - o, [&](auto rows) {
          Vec<T> psi[kPlanes][rows][kColumns];
          for (int d = 0; d < kPlanes; ++d) columns.values(chunk, o, d, band, psi[d]);
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < kColumns; ++c) {
              const T sign = columns.sign(o + r);
              const Vec<T> signed_psi = sign * psi[0][r][c];
              for (int d = 0; d < kPlanes; ++d) sums[d][c] += signed_psi * psi[d][r][c];
              if constexpr (kTau)
                for (int d = 1; d < 4; ++d) sums[4][c] += sign * psi[d][r][c] * psi[d][r][c];
            }
        });
      for (int d = 1; d < kPlanes; ++d)
        for (auto& v : sums[d]) v *= T(2);
      if constexpr (kTau)
        for (auto& v : sums[4]) v *= T(0.5);
      const std::int64_t count = std::min(kBand<T>, points - band);
      for (int d = 0; d < moments; ++d)
        std::memcpy(out + (t * moments + d) * ao.points + g + band, sums[d], count * sizeof(T));
    }
  });
}

template <class T>
void xc_moments(const AoBlocks<T>& ao, const DensityColumns<T>& density, std::int64_t moments,
                T* out) {
  (moments == 5   ? moments_of<T, 4, true>
   : moments == 4 ? moments_of<T, 4, false>
                  : moments_of<T, 1, false>)(ao, density, out);
}

}  // namespace pyscf_ipu::ISA
