// The sums of VV10 over pairs of grid points; see grid/nonlocal_correlation.py.
//
// With R the distance of points i and j, g = omega_i R^2 + kappa_i and h = omega_j R^2 + kappa_j,
//
//   phi = -3 / (2 g h (g + h)).
//
// Pairs are computed in float32 also in a float64 program: their rounding errors have no common
// sign, and sums over a tile of points go on in float64.  A pair of tiles is visited once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace pyscf_ipu::ISA {

constexpr std::int64_t kPairTile = 512;  // nine arrays of as many float32 fill half of a first cache

// What the kernel reads of a point: place, omega, kappa, electrons.
enum { kX, kY, kZ, kOmega, kKappa, kElectrons, kPointFields };

// Points that have electrons, in whole tiles.
struct PairPoints {
  std::vector<std::int64_t> number;  // among all points
  std::vector<float> fields[kPointFields];
  std::int64_t tiles;

  template <class T>
  PairPoints(const T* points, const T* omega, const T* kappa, const T* electrons,
             std::int64_t count) {
    for (std::int64_t g = 0; g < count; ++g)
      if (electrons[g] != 0) number.push_back(g);
    tiles = (std::int64_t(number.size()) + kPairTile - 1) / kPairTile;
    for (int f = 0; f < kPointFields; ++f)
      fields[f].assign(tiles * kPairTile, f == kKappa ? 1.0f : 0.0f);
    for (std::size_t k = 0; k < number.size(); ++k) {
      const std::int64_t g = number[k];
      const T values[kPointFields] = {points[3 * g], points[3 * g + 1], points[3 * g + 2],
                                      omega[g],      kappa[g],          electrons[g]};
      for (int f = 0; f < kPointFields; ++f) fields[f][k] = float(values[f]);
    }
  }
};

// What a pair adds to both of its points, before the electrons of the other one.  By phi:
// sum of phi, and with a = 1/g + 1/(g + h) of phi's derivatives by kappa and omega, a phi and
// a phi R^2 (without the factor -3/2).  By place: the slope of phi, times 2/3.
template <bool by_place>
inline __attribute__((always_inline)) void one_pair(Vec<float> x, Vec<float> y, Vec<float> z,
                                                    Vec<float> omega, Vec<float> kappa,
                                                    Vec<float> omega2, Vec<float> kappa2,
                                                    Vec<float>* mine, Vec<float>* other) {
  const Vec<float> square = x * x + y * y + z * z;
  const Vec<float> g = omega * square + kappa, h = omega2 * square + kappa2, both = g + h;
  const Vec<float> gh = g * h, inverse = reciprocal<float>(gh * both), second = inverse * inverse;
  if constexpr (by_place) {
    const Vec<float> slope = second * ((omega * h + omega2 * g) * both + (omega + omega2) * gh);
    mine[0] = x * slope, mine[1] = y * slope, mine[2] = z * slope;
    for (int k = 0; k < 3; ++k) other[k] = -mine[k];
  } else {
    mine[0] = other[0] = inverse;
    mine[1] = second * (h * both + gh), other[1] = second * (g * both + gh);
    mine[2] = mine[1] * square, other[2] = other[1] * square;
  }
}

// The pairs of tile I with tile J: sums for I, and unless it is the same tile for J.
template <bool by_place, bool same>
void pair_of_tiles(const PairPoints& p, std::int64_t tile, std::int64_t other,
                   std::vector<double>* sums) {
  constexpr int width = kWidth<float>, rows = 2;
  const float* at[kPointFields];
  for (int f = 0; f < kPointFields; ++f) at[f] = p.fields[f].data();
  alignas(64) float columns[3][kPairTile] = {};
  for (std::int64_t i = tile * kPairTile; i < (tile + 1) * kPairTile; i += rows) {
    Vec<float> total[rows][3] = {};
    for (std::int64_t c = 0; c < kPairTile; c += width) {
      const std::int64_t j = other * kPairTile + c;
      Vec<float> there[kPointFields], column[3];
      for (int f = 0; f < kPointFields; ++f) there[f] = load(at[f] + j);
      for (int k = 0; k < 3; ++k) column[k] = load(columns[k] + c);
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r) {
        const std::int64_t n = i + r;
        Vec<float> mine[3], its[3];
        one_pair<by_place>(at[kX][n] - there[kX], at[kY][n] - there[kY], at[kZ][n] - there[kZ],
                           splat<float>(at[kOmega][n]), splat<float>(at[kKappa][n]),
                           there[kOmega], there[kKappa], mine, its);
        for (int k = 0; k < 3; ++k) {
          total[r][k] += there[kElectrons] * mine[k];
          if constexpr (!same) column[k] += at[kElectrons][n] * its[k];
        }
      }
      if constexpr (!same)
        for (int k = 0; k < 3; ++k) store(columns[k] + c, column[k]);
    }
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < 3; ++k) sums[k][i + r] += sum<float>(total[r][k]);
  }
  if constexpr (!same)
    for (int k = 0; k < 3; ++k)
      for (std::int64_t c = 0; c < kPairTile; ++c) sums[k][other * kPairTile + c] += columns[k][c];
}

// out[3, G] from points[G, 3] and omega, kappa and electrons[G]; zero for points without electrons.
template <bool by_place, class T>
void pair_sums(const T* points, const T* omega, const T* kappa, const T* electrons,
               std::int64_t count, T* out) {
  const PairPoints p(points, omega, kappa, electrons, count);
  std::vector<double> sums[3];
  for (auto& each : sums) each.assign(p.tiles * kPairTile, 0.0);
  for (std::int64_t i = 0; i < p.tiles; ++i) {
    pair_of_tiles<by_place, true>(p, i, i, sums);
    for (std::int64_t j = i + 1; j < p.tiles; ++j)
      pair_of_tiles<by_place, false>(p, i, j, sums);
  }
  std::fill(out, out + 3 * count, T(0));
  for (int k = 0; k < 3; ++k)
    for (std::size_t n = 0; n < p.number.size(); ++n) out[k * count + p.number[n]] = T(sums[k][n]);
}

template <class T>
void nonlocal_pairs(const T* points, const T* omega, const T* kappa, const T* electrons,
                    std::int64_t count, T* out) {
  pair_sums<false, T>(points, omega, kappa, electrons, count, out);
}

template <class T>
void nonlocal_gradient(const T* points, const T* omega, const T* kappa, const T* electrons,
                       std::int64_t count, T* out) {
  pair_sums<true, T>(points, omega, kappa, electrons, count, out);
}

}  // namespace pyscf_ipu::ISA
