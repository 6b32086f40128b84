// The derivative of Becke's weights: the codelet "becke_gradient"; see gradient/points/weights.py.
//
// Vectors run over points.  A point's weight depends on the few atoms that have a share of it: only
// their cell functions are differentiated.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "grid/becke.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// A cell function whose derivative would change the energy by less at a point is left alone, Hartree.
template <class T>
constexpr T kNoShare = std::is_same_v<T, float> ? T(1e-14) : T(1e-24);

template <class T>
class BeckeGradientVertex {
 public:
  BeckeGradientVertex(const BeckeAtoms<T>& atoms, const T* high, const T* low, std::int64_t slots)
      : atoms_(atoms), high_(high), low_(low), n_(atoms.count), distance_(n_), cell_(n_),
        by_log_(n_), by_distance_(n_), x_(3 * n_), by_away_(3 * n_), by_inverse_(n_ * n_),
        inverse_total_(n_ * n_, 0.0), nuclei_(3 * slots, 0.0) {}

  // Adds what the points [count, 3] of slot `o`, the atom `own`, contribute.
  void slot(const T* points, const T* by_volume, std::int64_t count, std::int32_t o,
            std::int64_t own) {
    std::fill(by_away_.begin(), by_away_.end(), Vec<T>{});
    std::fill(by_inverse_.begin(), by_inverse_.end(), Vec<T>{});
    for (std::int64_t g = 0; g < count; g += kWidth<T>) {
      const int lanes = count - g < kWidth<T> ? count - g : kWidth<T>;
      Vec<T> r[3] = {}, v = {};
      for (int k = 0; k < lanes; ++k) {
        for (int d = 0; d < 3; ++d) r[d][k] = points[(g + k) * 3 + d];
        v[k] = by_volume[g + k];
      }
      if (any<T>(v != T(0))) vector_of_points(r, v, o, own);
    }
    for (std::int64_t b = 0; b < n_; ++b)
      for (int d = 0; d < 3; ++d) {
        if (b == own) continue;
        const double by = sum<T>(by_away_[3 * b + d]);
        nuclei_[3 * o + d] += by;
        nuclei_[3 * atoms_.slot[b] + d] -= by;
      }
    for (std::int64_t i = 0; i < n_ * n_; ++i) inverse_total_[i] += sum<T>(by_inverse_[i]);
  }

  // out[A, 3], with what comes of the inverse distances: d(1/|R_ij|) = -R_ij / |R_ij|^3 dR_ij.
  void put(T* out) {
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) {
        const std::int32_t a = atoms_.slot[i], b = atoms_.slot[j];
        const double inverse = atoms_.inverse[i * n_ + j];
        const double factor = -inverse_total_[i * n_ + j] * inverse * inverse * inverse;
        for (int d = 0; d < 3; ++d) {
          const double by = factor * ((high_[3 * a + d] - high_[3 * b + d]) +
                                      (low_[3 * a + d] - low_[3 * b + d]));
          nuclei_[3 * a + d] += by;
          nuclei_[3 * b + d] -= by;
        }
      }
    for (std::size_t i = 0; i < nuclei_.size(); ++i) out[i] = T(nuclei_[i]);
  }

 private:
  const BeckeAtoms<T>& atoms_;
  const T *high_, *low_;
  const std::int64_t n_;
  std::vector<Vec<T>> distance_, cell_, by_log_, by_distance_, x_, by_away_, by_inverse_;
  std::vector<double> inverse_total_, nuclei_;
  std::vector<std::int64_t> sharing_;

  void vector_of_points(const Vec<T> (&r)[3], Vec<T> by_volume, std::int32_t o, std::int64_t own) {
    for (std::int64_t b = 0; b < n_; ++b) {
      const std::int32_t a = atoms_.slot[b];
      Vec<T> square = {};
      for (int d = 0; d < 3; ++d) {
        const T far = high_[3 * o + d] - high_[3 * a + d], near = low_[3 * o + d] - low_[3 * a + d];
        x_[3 * b + d] = r[d] + (far + near);
        square += x_[3 * b + d] * x_[3 * b + d];
      }
      // A point may lie on a nucleus.
      constexpr T least = std::numeric_limits<T>::min();
      distance_[b] = square_root<T>(select<T>(square < least, splat<T>(least), square));
      by_distance_[b] = Vec<T>{};
    }
    by_cells(by_volume * becke_share<T>(atoms_, own, distance_.data(), cell_.data()), own);
    for (std::size_t k = 0; k < sharing_.size(); ++k)
      for (std::int64_t j = 0; j < n_; ++j) {
        // Of two sharing atoms both cell functions are differentiated, once.
        const bool both = j != sharing_[k] && any<T>(by_log_[j] != T(0));
        if (j != sharing_[k] && !(both && j < sharing_[k])) by_pair(sharing_[k], j, both);
      }
    for (std::int64_t b = 0; b < n_; ++b) {
      const Vec<T> per = by_distance_[b] / distance_[b];
      for (int d = 0; d < 3; ++d) by_away_[3 * b + d] += per * x_[3 * b + d];
    }
  }

  // by_log[i] = weighted share times (delta_io - p_i), and the list of those that are not zero.
  void by_cells(Vec<T> weighted, std::int64_t own) {
    Vec<T> others = {};
    for (std::int64_t i = 0; i < n_; ++i)
      if (i != own) others += cell_[i];
    const Vec<T> total = others + cell_[own];
    const IntVec<T> usable = total > T(0);
    const Vec<T> scale =
        select<T>(usable, weighted / select<T>(usable, total, splat<T>(1)), Vec<T>{});
    sharing_.clear();
    for (std::int64_t i = 0; i < n_; ++i) {
      const Vec<T> by = i == own ? others * scale : -cell_[i] * scale;
      const IntVec<T> counts = (by > kNoShare<T>) | (by < -kNoShare<T>) | ~(by == by);
      by_log_[i] = select<T>(counts, by, Vec<T>{});
      if (any<T>(counts)) sharing_.push_back(i);
    }
  }

  // By nu_ij through the cell function of i and, if `both`, that of j.  With a and b = 1 - a along
  // Becke's iteration, s' / s is the product of 6 b over a times that of 3 - 2 a.
  __attribute__((always_inline)) void by_pair(std::int64_t i, std::int64_t j, bool both) {
    const T inverse = atoms_.inverse[i * n_ + j], asymmetry = atoms_.asymmetry[i * n_ + j];
    if (inverse == T(0)) return;
    const Vec<T> apart = distance_[i] - distance_[j], mu = apart * inverse;
    const Vec<T> half = T(0.5) * (mu + asymmetry * (T(1) - mu * mu));
    Vec<T> a = T(0.5) - half, b = T(0.5) + half;
    constexpr T least = T(1e-20);  // where a is smaller, so is the cell function: zero
    Vec<T> slope_a = splat<T>(T(216)), slope_b = slope_a;
    Vec<T> divisor_a = select<T>(a < least, splat<T>(least), a);
    Vec<T> divisor_b = select<T>(b < least, splat<T>(least), b);
    for (int k = 0; k < 3; ++k) {
      const Vec<T> rest_a = T(3) - T(2) * a, rest_b = T(3) - T(2) * b;
      slope_a *= b, divisor_a *= rest_a;
      slope_b *= a, divisor_b *= rest_b;
      a = (a * a) * rest_a, b = (b * b) * rest_b;
    }
    Vec<T> by = -by_log_[i] * (slope_a / divisor_a);
    if (both) by += by_log_[j] * (slope_b / divisor_b);
    by *= T(0.5) - asymmetry * mu;
    const Vec<T> by_apart = by * inverse;
    by_distance_[i] += by_apart;
    by_distance_[j] -= by_apart;
    by_inverse_[i * n_ + j] += by * apart;
  }
};

// out[A, 3]: the derivative by the nuclei of the sum of by_volume[M, G] times the owner's share at
// points[M, G, 3], relative to owner[M].
template <class T>
void becke_gradient(const T* points, const T* by_volume, const std::int32_t* owner, const T* high,
                    const T* low, const T* radius, const bool* mask, std::int64_t slots,
                    std::int64_t count, std::int64_t n_atoms, T* out) {
  const BeckeAtoms<T> atoms(high, low, radius, mask, n_atoms);
  BeckeGradientVertex<T> vertex(atoms, high, low, n_atoms);
  for (std::int64_t m = 0; m < slots; ++m) {
    std::int64_t own = 0;
    while (own < atoms.count && atoms.slot[own] != owner[m]) ++own;
    if (own == atoms.count) continue;
    vertex.slot(points + m * count * 3, by_volume + m * count, count, owner[m], own);
  }
  vertex.put(out);
}

}  // namespace pyscf_ipu::ISA
