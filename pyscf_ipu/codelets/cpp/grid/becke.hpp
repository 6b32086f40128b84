// Becke's weights of the points of some atom slots; see grid/becke.py.
//
// Vectors run over points.  Both cell functions of a pair of atoms come from one nu, and empty
// slots take no part.  Leaving out atoms whose cell function is negligible gains little: the points
// of a vector lie on one sphere, all around its centre.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "simd.hpp"

namespace pyscf_ipu::ISA {

// The real atoms of a molecule, B of them, and all their pairs.
template <class T>
struct BeckeAtoms {
  std::int64_t count = 0;
  std::vector<std::int32_t> slot;   // [B]
  std::vector<T> inverse;           // [B, B] 1/|R_i - R_j|; 0: one place, which is not divided
  std::vector<T> asymmetry;         // [B, B] a_ij = -a_ji of the size adjustment

  BeckeAtoms(const T* high, const T* low, const T* radius, const bool* mask, std::int64_t atoms) {
    for (std::int64_t a = 0; a < atoms; ++a)
      if (mask[a]) slot.push_back(a);
    count = slot.size();
    for (std::int32_t i : slot)
      for (std::int32_t j : slot) {
        T square = 0;
        for (int d = 0; d < 3; ++d) {
          const T x = (high[3 * i + d] - high[3 * j + d]) + (low[3 * i + d] - low[3 * j + d]);
          square += x * x;
        }
        inverse.push_back(square > 0 ? T(1) / std::sqrt(square) : T(0));
        const T a = (radius[j] / radius[i] - radius[i] / radius[j]) * T(0.25);
        asymmetry.push_back(a > T(0.5) ? T(0.5) : a < T(-0.5) ? T(-0.5) : a);
      }
  }
};

// Three times s -> s^2 (3 - 2 s): Becke's iteration in the form without cancellation.
template <class T>
inline Vec<T> sharpen(Vec<T> s) {
  for (int i = 0; i < 3; ++i) s = (s * s) * (T(3) - T(2) * s);
  return s;
}

// The share of atom `own` at one vector of points, from the distances [B]; cell [B] is scratch.
template <class T>
Vec<T> becke_share(const BeckeAtoms<T>& atoms, std::int64_t own, const Vec<T>* distance,
                   Vec<T>* cell) {
  const std::int64_t n = atoms.count;
  for (std::int64_t i = 0; i < n; ++i) cell[i] = splat<T>(1);
  Vec<T> total = {};
  for (std::int64_t i = 0; i < n; ++i) {
    Vec<T> mine = cell[i];
    for (std::int64_t j = i + 1; j < n; ++j) {
      const T inverse = atoms.inverse[i * n + j], asymmetry = atoms.asymmetry[i * n + j];
      if (inverse == T(0)) continue;
      const Vec<T> mu = (distance[i] - distance[j]) * inverse;
      const Vec<T> half = T(0.5) * (mu + asymmetry * (T(1) - mu * mu));
      mine *= sharpen<T>(T(0.5) - half);
      cell[j] *= sharpen<T>(T(0.5) + half);
    }
    cell[i] = mine;
    total += mine;
  }
  // A padded point may lie where every cell function underflows.
  const IntVec<T> usable = total > T(0);
  return select<T>(usable, cell[own] / select<T>(usable, total, splat<T>(1)), Vec<T>{});
}

// out[M, G] = volume[M, G] times the owner's share at points[M, G, 3], relative to owner[M].
template <class T>
void becke_weights(const T* points, const T* volume, const std::int32_t* owner, const T* high,
                   const T* low, const T* radius, const bool* mask, std::int64_t slots,
                   std::int64_t count, std::int64_t n_atoms, T* out) {
  constexpr int width = kWidth<T>;
  const BeckeAtoms<T> atoms(high, low, radius, mask, n_atoms);
  std::vector<Vec<T>> distance(atoms.count), cell(atoms.count);
  for (std::int64_t m = 0; m < slots; ++m) {
    const std::int32_t o = owner[m];
    std::int64_t own = 0;
    while (own < atoms.count && atoms.slot[own] != o) ++own;
    for (std::int64_t g = 0; g < count; g += width) {
      const int n = count - g < width ? count - g : width;
      T* to = out + m * count + g;
      Vec<T> r[3] = {}, v = {};
      for (int k = 0; k < n; ++k) {
        for (int d = 0; d < 3; ++d) r[d][k] = points[(m * count + g + k) * 3 + d];
        v[k] = volume[m * count + g + k];
      }
      // Padded points have no volume.
      if (own == atoms.count || !any<T>(v != T(0))) {
        for (int k = 0; k < n; ++k) to[k] = 0;
        continue;
      }
      for (std::int64_t b = 0; b < atoms.count; ++b) {
        const std::int32_t a = atoms.slot[b];
        Vec<T> square = {};
        for (int d = 0; d < 3; ++d) {
          const T far = high[3 * o + d] - high[3 * a + d], near = low[3 * o + d] - low[3 * a + d];
          const Vec<T> x = r[d] + (far + near);
          square += x * x;
        }
        distance[b] = square_root<T>(square);
      }
      v *= becke_share<T>(atoms, own, distance.data(), cell.data());
      std::memcpy(to, &v, n * sizeof(T));
    }
  }
}

}  // namespace pyscf_ipu::ISA
