// Blocks of grid points, one after another, with the AOs that count there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gemm.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Points of a band: of those, products keep the sums in registers.
template <class T>
constexpr std::int64_t kBand = kColumns * kWidth<T>;

static_assert(kScreened % kBand<float> == 0 && kScreened % kBand<double> == 0);

// The values of `count` AOs on kScreened points: AO k, whose number is aos[k], starts at at(d, k) in
// plane d.
template <class T>
struct Chunk {
  const T* ao;
  std::int64_t plane, row, count;
  const std::int32_t* aos;
  const T* at(std::int64_t d, std::int64_t k) const { return ao + d * plane + k * row; }
};

// Calls f(tile, first point, points, chunk) for every kScreened points of a tile.  The AOs that count
// come first in a tile and one after another, so that the hardware foresees what is read next.  What
// is incomplete is copied, with zeros beyond its end.
template <class T, class F>
void each_chunk(const AoBlocks<T>& ao, F f) {
  std::vector<T> scratch;
  for (std::int64_t t = 0; t < ao.tiles; ++t) {
    const T* values = ao.values + t * ao.tile;
    for (std::int64_t g = 0; g < ao.points; g += kScreened) {
      const std::int64_t points = std::min(kScreened, ao.points - g), count = ao.count[t];
      Chunk<T> chunk{values + g, ao.n * ao.points, ao.points, count, ao.aos + t * ao.n};
      if (points < kScreened) {
        scratch.assign(ao.planes * count * kScreened, T(0));
        for (std::int64_t d = 0; d < ao.planes; ++d)
          for (std::int64_t k = 0; k < count; ++k)
            std::copy_n(chunk.at(d, k), points, scratch.data() + (d * count + k) * kScreened);
        chunk.ao = scratch.data();
        chunk.plane = count * kScreened;
        chunk.row = kScreened;
      }
      f(t, g, points, chunk);
    }
  }
}

// Adds numbers for some AOs, one after another, to a row with a place for all of them.
template <class T>
class Spread {
 public:
  // `width`: of the row, whole vectors.
  explicit Spread(std::int64_t width) : masks_(width / kWidth<T>) {}

  void choose(const std::int32_t* aos, std::int64_t count) {
    aos_ = aos;
    count_ = count;
    std::fill(masks_.begin(), masks_.end(), 0);
    for (std::int64_t k = 0; k < count; ++k)
      masks_[aos[k] / kWidth<T>] |= std::uint16_t(1 << aos[k] % kWidth<T>);
  }

  // `packed` may be read a vector beyond its end.
  void add(const T* packed, T* row) const {
#ifdef __AVX512F__
    for (std::size_t v = 0; v < masks_.size(); ++v, row += kWidth<T>) {
      store<T>(row, load(row) + expand<T>(masks_[v], load(packed)));
      packed += __builtin_popcount(masks_[v]);
    }
#else
    for (std::int64_t k = 0; k < count_; ++k) row[aos_[k]] += packed[k];
#endif
  }

 private:
  const std::int32_t* aos_ = nullptr;
  std::int64_t count_ = 0;
  std::vector<std::uint16_t> masks_;
};

// The coefficients of some columns of a density for the AOs of a chunk, column by column.
template <class T>
class ColumnsOfChunk {
 public:
  explicit ColumnsOfChunk(const DensityColumns<T>& of) : of_(of) {}

  void choose(const Chunk<T>& chunk) {
    count_ = chunk.count;
    packed_.resize(of_.count * count_);
    for (std::int64_t k = 0; k < count_; ++k)
      for (std::int64_t o = 0; o < of_.count; ++o)
        packed_[o * count_ + k] = of_.vectors[chunk.aos[k] * of_.width + o];
  }
  std::int64_t columns() const { return of_.count; }
  T sign(std::int64_t column) const { return of_.signs[column]; }
  const T* of(std::int64_t column) const { return packed_.data() + column * count_; }

  // psi = C^T ao of kR columns from the o-th on, in plane d of a band.
  template <int kR>
  inline __attribute__((always_inline)) void values(const Chunk<T>& chunk, std::int64_t o,
                                                    std::int64_t d, std::int64_t band,
                                                    Vec<T> (&psi)[kR][kColumns]) const {
    multiply<T, kR, kColumns>([&](int r, std::int64_t k) { return of(o + r)[k]; },
                              [&](std::int64_t k) { return chunk.at(d, k) + band; }, count_, psi);
  }

 private:
  const DensityColumns<T>& of_;
  std::int64_t count_ = 0;
  std::vector<T> packed_;
};

}  // namespace pyscf_ipu::ISA
