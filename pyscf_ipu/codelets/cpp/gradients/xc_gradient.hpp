// The derivative of the semilocal energy by the centres of AOs and points: the codelet "xc_gradient";
// see gradient/points/exchange_correlation.py.
//
// For kScreened points at a time, the energy's derivatives by the values of every AO and by its
// gradients are two matrix products; they meet the AOs' first and second derivatives, which are made
// again shell by shell and never stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gemm.hpp"
#include "grid/bands.hpp"
#include "grid/orbitals.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Sums over the functions m(x, y, z) of a contraction, by value u and by gradient c: what remains
// when the radial function, which they share, is taken out.
template <class T, bool kGradient>
struct AngularSums {
  Vec<T> value{}, along{}, inner{};   // u m; (r.c) m; c.grad m
  Vec<T> by_slope[3]{}, by_value[3]{};  // c m + (r.c) grad m; u grad m + (c.grad) grad m

  // One function: m, its gradient, and its second derivatives times c.
  void add(Vec<T> u, const Vec<T>* c, const Vec<T>* r, Vec<T> m, const Vec<T>* gradient,
           const Vec<T>* second) {
    value += u * m;
    Vec<T> distance{};
    if constexpr (kGradient) {
      distance = r[0] * c[0] + r[1] * c[1] + r[2] * c[2];
      along += distance * m;
      inner += c[0] * gradient[0] + c[1] * gradient[1] + c[2] * gradient[2];
    }
    for (int d = 0; d < 3; ++d) {
      by_value[d] += u * gradient[d];
      if constexpr (kGradient) {
        by_slope[d] += c[d] * m + distance * gradient[d];
        by_value[d] += second[d];
      }
    }
  }

  // Adds the derivative by the point's position; `slope` and `curve` are R'/r and (R'/r)'/r.
  void put(Vec<T> radial, Vec<T> slope, Vec<T> curve, const Vec<T>* r, Vec<T>* to) const {
    const Vec<T> outward = kGradient ? slope * (value + inner) + curve * along : slope * value;
    for (int d = 0; d < 3; ++d)
      to[d] += r[d] * outward + radial * by_value[d] + slope * by_slope[d];
  }
};

// The energy's derivatives by one function at a vector of points.
template <class T>
struct ByFunction {
  Vec<T> u{}, c[3]{};
  void add(T factor, const ByFunction& other) {
    u += factor * other.u;
    for (int d = 0; d < 3; ++d) c[d] += factor * other.c[d];
  }
};

template <class T, bool kGradient>
inline void pull_s(const ByFunction<T>& by, const Vec<T>* r, AngularSums<T, kGradient>& sums) {
  const Vec<T> none[3] = {};
  sums.add(by.u, by.c, r, splat<T>(T(1)), none, none);
}

template <class T, bool kGradient>
inline void pull_p(const ByFunction<T>* by, const Vec<T>* r, AngularSums<T, kGradient>& sums) {
  const Vec<T> none[3] = {};
#pragma GCC unroll 3
  for (int a = 0; a < 3; ++a) {
    Vec<T> gradient[3] = {};
    gradient[a] = splat<T>(T(1));
    sums.add(by[a].u, by[a].c, r, r[a], gradient, none);
  }
}

// Of x^2, xy, ... and of x^3, x^2 y, ...: `by` has the cartesian functions.
template <class T, bool kGradient>
inline void pull_d(const ByFunction<T>* by, const Vec<T>* r, AngularSums<T, kGradient>& sums) {
  for (int a = 0; a < 3; ++a)
    for (int b = a; b < 3; ++b, ++by) {
      Vec<T> gradient[3] = {}, second[3] = {};
      gradient[a] += r[b], gradient[b] += r[a];
      second[a] += by->c[b], second[b] += by->c[a];
      sums.add(by->u, by->c, r, r[a] * r[b], gradient, second);
    }
}

template <class T, bool kGradient>
inline void pull_f(const ByFunction<T>* by, const Vec<T>* r, AngularSums<T, kGradient>& sums) {
  for (int a = 0; a < 3; ++a)
    for (int b = a; b < 3; ++b)
      for (int e = b; e < 3; ++e, ++by) {
        const Vec<T>* c = by->c;
        Vec<T> gradient[3] = {}, second[3] = {};
        gradient[a] += r[b] * r[e], gradient[b] += r[a] * r[e], gradient[e] += r[a] * r[b];
        second[a] += c[b] * r[e] + c[e] * r[b];
        second[b] += c[a] * r[e] + c[e] * r[a];
        second[e] += c[a] * r[b] + c[b] * r[a];
        sums.add(by->u, c, r, r[a] * r[b] * r[e], gradient, second);
      }
}

// Forces of points upon the nuclei of AOs, and back: sums for one owner in vectors, all in double.
template <class T>
class ForceSums {
 public:
  explicit ForceSums(std::int64_t atoms) : some_(3 * atoms), total_(3 * atoms, 0.0) {}

  // by[vectors, 3] on kScreened points, of which the first `points` exist; all of them `same` owner's?
  void add(const Vec<T>* by, const std::int32_t* owner, std::int64_t points, bool same,
           std::int32_t atom) {
    if (same) {
      if (owner[0] != owner_) flush(owner[0]);
      for (std::int64_t v = 0; v < kScreened / kWidth<T>; ++v)
        for (int d = 0; d < 3; ++d) some_[3 * atom + d] += by[3 * v + d];
      return;
    }
    for (std::int64_t g = 0; g < points; ++g)
      for (int d = 0; d < 3; ++d)
        put(atom, owner[g], d, by[g / kWidth<T> * 3 + d][g % kWidth<T>]);
  }

  void flush(std::int32_t next) {
    for (std::size_t i = 0; i < some_.size() && owner_ >= 0; ++i)
      put(std::int32_t(i / 3), owner_, int(i % 3), sum<T>(some_[i]));
    std::fill(some_.begin(), some_.end(), Vec<T>{});
    owner_ = next;
  }

  const std::vector<double>& total() const { return total_; }

 private:
  std::vector<Vec<T>> some_;
  std::vector<double> total_;
  std::int32_t owner_ = -1;

  // What moves with the points changes nothing, and would be large.
  void put(std::int32_t atom, std::int32_t owner, int d, double by) {
    if (atom == owner) return;
    total_[3 * atom + d] -= by;
    total_[3 * owner + d] += by;
  }
};

template <class T, bool kGradient>
class XcGradientVertex {
  static constexpr std::int64_t kVectors = kScreened / kWidth<T>;

 public:
  explicit XcGradientVertex(const XcGradientProblem<T>& in)
      : in_(in), by_value_(in.ao.n * kScreened), product_(in.ao.n * kScreened),
        place_(in.ao.n), pure_(in.at), sums_(in.atoms), columns_(in.density) {
    if (kGradient) weighted_.resize(in.ao.n * kScreened);
    if (in.moments == 5) moved_.resize(3 * in.ao.n * kScreened);
    int deepest = 0;
    for (std::int64_t s = 0; s < in.at.n_shells; ++s)
      deepest = std::max(deepest, shells()[s].n_prim);
    gauss_.resize(deepest);
  }

  void operator()(T* out) {
    each_chunk(in_.ao, [&](std::int64_t t, std::int64_t g, std::int64_t points,
                           const Chunk<T>& chunk) {
      if (chunk.count == 0) return;
      const std::int64_t first = t * in_.ao.points + g;
      for (auto& row : factors_) std::fill_n(row, kScreened, T(0));
      for (std::int64_t v = 0; v < in_.moments; ++v)
        std::copy_n(in_.factors + (t * in_.moments + v) * in_.ao.points + g, points, factors_[v]);
      if (in_.density.count >= 0) columns_.choose(chunk);
      products(chunk);
      for (auto& row : local_) std::fill_n(row, kScreened, T(0));
      for (std::int64_t k = 0; k < points; ++k)
        for (int d = 0; d < 3; ++d) local_[d][k] = in_.at.points[(first + k) * 3 + d];
      meet(chunk, in_.at.owner + first, points);
    });
    sums_.flush(-1);
    for (std::size_t i = 0; i < sums_.total().size(); ++i) out[i] = T(sums_.total()[i]);
  }

 private:
  const XcGradientProblem<T>& in_;
  alignas(64) T factors_[5][kScreened], local_[3][kScreened];
  alignas(64) T xyz_[3 * kScreened] = {};  // any number where there is no point
  // Per AO that counts: the derivative by its value, its product with the density matrix, and, for
  // the kinetic energy density, those of its gradient.
  std::vector<T> by_value_, product_, weighted_, moved_;
  std::vector<std::int32_t> place_;  // of every AO among those that count, or -1
  const Pure<T> pure_;
  ForceSums<T> sums_;
  std::vector<Vec<T>> gauss_;
  ColumnsOfChunk<T> columns_;
  std::vector<T> psi_;

  const ShellRow* shells() const { return reinterpret_cast<const ShellRow*>(in_.at.shells); }

  // out[count, kScreened] = left(i)[at(k)] right[k, row], `terms` terms.
  template <class Left, class At>
  static void product_on_chunk(std::int64_t count, Left left, At at, const T* right,
                               std::int64_t row, std::int64_t terms, T* out) {
    for (std::int64_t i = 0; i < count; i += kRows)
      by_number<kRows>(count - i, [&](auto rows) {
        const T* a[rows];
        for (int r = 0; r < rows; ++r) a[r] = left(i + r);
        for (std::int64_t band = 0; band < kScreened; band += kBand<T>) {
          Vec<T> sums[rows][kColumns];
          multiply<T, rows, kColumns>([&](int r, std::int64_t k) { return a[r][at(k)]; },
                                      [&](std::int64_t k) { return right + k * row + band; }, terms,
                                      sums);
#pragma GCC unroll 8
          for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
            for (int c = 0; c < kColumns; ++c)
              store<T>(out + (i + r) * kScreened + band + c * kWidth<T>, sums[r][c]);
        }
      });
  }

  // out[count, kScreened] = density times right[count, row].
  void times_density(const Chunk<T>& chunk, const T* right, std::int64_t row, T* out) {
    if (in_.density.count < 0) {
      const T* density = in_.density.vectors;
      product_on_chunk(
          chunk.count, [&](std::int64_t i) { return density + chunk.aos[i] * in_.ao.n; },
          [&](std::int64_t k) { return chunk.aos[k]; }, right, row, chunk.count, out);
      return;
    }
    psi_.resize(columns_.columns() * kScreened);
    product_on_chunk(
        columns_.columns(), [&](std::int64_t o) { return columns_.of(o); },
        [](std::int64_t k) { return k; }, right, row, chunk.count, psi_.data());
    product_on_chunk(
        chunk.count, [&](std::int64_t i) { return columns_.of(0) + i; },
        [&](std::int64_t o) { return o * chunk.count; }, psi_.data(), kScreened,
        columns_.columns(), out);
  }

  // product = D ao, and by_value = 2 D (f ao + g . grad ao).
  void products(const Chunk<T>& chunk) {
    times_density(chunk, chunk.ao, chunk.row, product_.data());
    if constexpr (!kGradient) {
      for (std::int64_t k = 0; k < chunk.count; ++k)
        for (std::int64_t g = 0; g < kScreened; ++g)
          by_value_[k * kScreened + g] = T(2) * factors_[0][g] * product_[k * kScreened + g];
      return;
    }
    for (std::int64_t k = 0; k < chunk.count; ++k)
      for (std::int64_t g = 0; g < kScreened; g += kWidth<T>) {
        Vec<T> sum = load(factors_[0] + g) * load(chunk.at(0, k) + g);
        for (int d = 1; d < 4; ++d) sum += load(factors_[d] + g) * load(chunk.at(d, k) + g);
        store<T>(weighted_.data() + k * kScreened + g, T(2) * sum);
      }
    times_density(chunk, weighted_.data(), kScreened, by_value_.data());
    if (in_.moments == 5)
      for (int d = 0; d < 3; ++d)
        times_density(chunk, chunk.at(d + 1, 0), chunk.row, moved_.data() + d * in_.ao.n * kScreened);
  }

  void meet(const Chunk<T>& chunk, const std::int32_t* owner, std::int64_t points) {
    std::fill(place_.begin(), place_.end(), -1);
    for (std::int64_t k = 0; k < chunk.count; ++k) place_[chunk.aos[k]] = std::int32_t(k);
    const auto& at = in_.at;
    const bool same = std::count(owner, owner + points, owner[0]) == points;
    for (std::int64_t s = 0; s < at.n_shells;) {
      const std::int32_t atom = shells()[s].atom;
      Vec<T> by[3 * kVectors] = {};
      bool near = false;
      for (; s < at.n_shells && shells()[s].atom == atom; ++s) {
        const ShellRow& shell = shells()[s];
        if (same && atom == owner[0]) continue;
        const auto* first = place_.data() + shell.first_ao;
        if (std::all_of(first, first + pure_.functions(shell), [](auto k) { return k < 0; })) continue;
        if (!near)
          relative(local_[0], owner, at.high, at.low, points, kScreened, atom, xyz_);
        near = true;
        shell_forces(shell, points, by);
      }
      if (near) sums_.add(by, owner, points, same, atom);
    }
  }

  // The derivatives by AO `ao` at a vector of points, if it counts.
  ByFunction<T> by_function(std::int64_t ao, std::int64_t g) const {
    ByFunction<T> by;
    if (place_[ao] < 0) return by;
    const std::int64_t k = place_[ao] * kScreened + g;
    by.u = load(by_value_.data() + k);
    if constexpr (kGradient) {
      const Vec<T> twice = T(2) * load(product_.data() + k);
      for (int d = 0; d < 3; ++d) by.c[d] = twice * load(factors_[d + 1] + g);
      if (in_.moments == 5)
        for (int d = 0; d < 3; ++d)
          by.c[d] += load(factors_[4] + g) * load(moved_.data() + d * in_.ao.n * kScreened + k);
    }
    return by;
  }

  void shell_forces(const ShellRow& shell, std::int64_t points, Vec<T>* by) {
    const T* exponents = in_.at.exponents + shell.exponents;
    const T* coefficients = in_.at.coefficients + shell.coefficients;
    const int* n = shell.contractions;
    const int columns = shell.columns();
    for (std::int64_t g = 0; g < points; g += kWidth<T>) {
      const Vec<T> r[3] = {load(xyz_ + g), load(xyz_ + kScreened + g),
                           load(xyz_ + 2 * kScreened + g)};
      const Vec<T> square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
      for (int k = 0; k < shell.n_prim; ++k) gauss_[k] = exp_minus<T>(exponents[k] * square);
      std::int64_t ao = shell.first_ao;
      for (int l = 0, column = 0; l < 4; ++l)
        for (int c = 0; c < n[l]; ++c, ++column) {
          Vec<T> radial{}, slope{}, curve{};
          for (int k = 0; k < shell.n_prim; ++k) {
            const T twice = T(-2) * exponents[k];
            const Vec<T> term = coefficients[k * columns + column] * gauss_[k];
            radial += term;
            slope += twice * term;
            if constexpr (kGradient) curve += (twice * twice) * term;
          }
          AngularSums<T, kGradient> sums;
          ao += pull(l, ao, g, r, sums);
          sums.put(radial, slope, curve, r, by + g / kWidth<T> * 3);
        }
    }
  }

  // The sums of one contraction whose first AO is `ao`; its number of functions.
  int pull(int l, std::int64_t ao, std::int64_t g, const Vec<T>* r,
           AngularSums<T, kGradient>& sums) const {
    if (l == 0) {
      pull_s(by_function(ao, g), r, sums);
      return 1;
    }
    if (l == 1) {
      const ByFunction<T> by[3] = {by_function(ao, g), by_function(ao + 1, g),
                                   by_function(ao + 2, g)};
      pull_p(by, r, sums);
      return 3;
    }
    const int functions = l == 2 ? pure_.d_functions : pure_.f_functions;
    const int components = l == 2 ? 6 : 10;
    const T* pure = l == 2 ? pure_.d.data() : pure_.f.data();
    ByFunction<T> by[10];
    for (int f = 0; f < functions; ++f) {
      const ByFunction<T> one = by_function(ao + f, g);
      for (int m = 0; m < components; ++m)
        if (pure[f * components + m] != T(0)) by[m].add(pure[f * components + m], one);
    }
    l == 2 ? pull_d(by, r, sums) : pull_f(by, r, sums);
    return functions;
  }
};

// out[A, 3]: the derivative by the nuclei, which AOs and points move with.
template <class T>
void xc_gradient(const XcGradientProblem<T>& problem, T* out) {
  if (problem.ao.planes == 4)
    XcGradientVertex<T, true>{problem}(out);
  else
    XcGradientVertex<T, false>{problem}(out);
}

}  // namespace pyscf_ipu::ISA
