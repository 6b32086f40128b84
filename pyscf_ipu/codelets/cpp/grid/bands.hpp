// Bands of grid points, one after another, with the AOs that count there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gemm.hpp"
#include "kernels.hpp"
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

// The AOs that do not vanish on a band, and which kRows or kWidth of them hold one.
template <class T>
struct Live {
  std::vector<std::int32_t> rows, panels, vectors;

  void find(const T* live, std::int64_t n) {
    clear();
    for (std::int64_t i = 0; i < n; ++i) {
      if (live[i] == T(0)) continue;
      rows.push_back(std::int32_t(i));
      const auto panel = std::int32_t(i / kRows), vector = std::int32_t(i / kWidth<T>);
      if (panels.empty() || panels.back() != panel) panels.push_back(panel);
      if (vectors.empty() || vectors.back() != vector) vectors.push_back(vector);
    }
  }

  void clear() {
    rows.clear();
    panels.clear();
    vectors.clear();
  }

  // The r-th row after the i-th; beyond the last one, the last.
  std::int64_t row(std::int64_t i, int r) const {
    return rows[std::min(i + r, std::int64_t(rows.size()) - 1)];
  }
};

// The band that comes after the present one, which the hardware does not foresee.
template <class T>
struct Coming {
  Band<T> band;
  const Live<T>& live;

  // Asks for its rows i to i + kRows.
  void prefetch(std::int64_t planes, std::int64_t i) const {
    const auto end = std::min(i + kRows, std::int64_t(live.rows.size()));
    for (; i < end; ++i)
      for (std::int64_t d = 0; d < planes; ++d)
        for (std::int64_t c = 0; c < kColumns; ++c)
          __builtin_prefetch(band.at(d, live.rows[i]) + c * kWidth<T>, 0, 2);
  }
};

// Calls f(tile, first point, points, band, live, coming) for every band.  An incomplete band is
// copied, with zeros beyond its end.
template <class T, class F>
void each_band(const AoBlocks<T>& ao, F f) {
  const std::int64_t rows = ao.planes * ao.n;
  std::vector<T> scratch;
  Live<T> live, next;
  const auto list = [&](std::int64_t t, std::int64_t g) {
    return ao.live + (t * ao.lists() + g / kScreened) * ao.n;
  };
  if (ao.tiles * ao.points > 0) next.find(list(0, 0), ao.n);
  for (std::int64_t t = 0; t < ao.tiles; ++t)
    for (std::int64_t g = 0; g < ao.points; g += kBand<T>) {
      std::swap(live, next);
      const bool last = g + kBand<T> >= ao.points;
      const std::int64_t then = last ? t + 1 : t, there = last ? 0 : g + kBand<T>;
      if (then < ao.tiles) next.find(list(then, there), ao.n);
      else next.clear();
      const Band<T> following{ao.values + then * rows * ao.points + there, ao.n * ao.points,
                              ao.points};
      Band<T> band{ao.values + t * rows * ao.points + g, ao.n * ao.points, ao.points};
      const std::int64_t count = std::min(kBand<T>, ao.points - g);
      if (count < kBand<T>) {
        scratch.assign(rows * kBand<T>, T(0));
        for (std::int64_t i = 0; i < rows; ++i)
          std::copy_n(band.ao + i * ao.points, count, scratch.data() + i * kBand<T>);
        band = {scratch.data(), ao.n * kBand<T>, kBand<T>};
      }
      f(t, g, count, band, live, Coming<T>{following, next});
    }
}

}  // namespace pyscf_ipu::ISA
