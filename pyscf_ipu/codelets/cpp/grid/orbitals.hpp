// Values and gradients of the AOs on blocks of grid points; see grid/ao_values.py.
//
// One shell at a time on all points of a block: its rows of the result are written once, in order,
// and the coordinates relative to its nucleus stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// A row of orbitals.shell_table: contractions[l] radial functions of angular momentum l.
struct ShellRow {
  std::int32_t atom, first_ao, n_prim, exponents, coefficients, contractions[4];
};

// Where one vector of points goes: row f of plane d, of which the first `count` lanes exist.
template <class T>
struct Rows {
  T* out;
  std::int64_t plane, row;
  int count;
  void put(int d, int f, Vec<T> v) const {
    T* to = out + d * plane + f * row;
    if (count == kWidth<T>) store<T>(to, v);
    else std::memcpy(to, &v, count * sizeof(T));
  }
};

// The functions of one contraction with angular momentum 0 to 3, from its radial value, the radial
// derivative over r, and the point; `pure` makes d functions [functions, 6] of x^2, xy, ..., and f
// functions [functions, 10] of x^3, x^2 y, ...
template <class T, bool kGradient>
inline void put_s(const Rows<T>& rows, int f, Vec<T> value, Vec<T> slope, const Vec<T>* r) {
  rows.put(0, f, value);
  if constexpr (kGradient)
    for (int d = 0; d < 3; ++d) rows.put(d + 1, f, slope * r[d]);
}

template <class T, bool kGradient>
inline void put_p(const Rows<T>& rows, int f, Vec<T> value, Vec<T> slope, const Vec<T>* r) {
#pragma GCC unroll 3
  for (int c = 0; c < 3; ++c) {
    rows.put(0, f + c, value * r[c]);
    if constexpr (kGradient)
#pragma GCC unroll 3
      for (int d = 0; d < 3; ++d) {
        const Vec<T> v = (slope * r[c]) * r[d];
        rows.put(d + 1, f + c, c == d ? v + value : v);
      }
  }
}

template <class T, bool kGradient>
inline void put_d(const Rows<T>& rows, int f, Vec<T> value, Vec<T> slope, const Vec<T>* r,
                  const T* pure, int functions) {
  Vec<T> square[kGradient ? 4 : 1][6];
  int m = 0;
  for (int a = 0; a < 3; ++a)
    for (int b = a; b < 3; ++b, ++m) {
      square[0][m] = value * r[a] * r[b];
      if constexpr (kGradient)
        for (int d = 0; d < 3; ++d) {
          Vec<T> v = slope * r[a] * r[b] * r[d];
          if (d == a) v += value * r[b];
          if (d == b) v += value * r[a];
          square[d + 1][m] = v;
        }
    }
  for (int d = 0; d < (kGradient ? 4 : 1); ++d)
    for (int n = 0; n < functions; ++n) {
      Vec<T> v = {};
      for (int k = 0; k < 6; ++k) v += pure[n * 6 + k] * square[d][k];
      rows.put(d, f + n, v);
    }
}

template <class T, bool kGradient>
inline void put_f(const Rows<T>& rows, int f, Vec<T> value, Vec<T> slope, const Vec<T>* r,
                  const T* pure, int functions) {
  Vec<T> cube[kGradient ? 4 : 1][10];
  int m = 0;
  for (int a = 0; a < 3; ++a)
    for (int b = a; b < 3; ++b)
      for (int c = b; c < 3; ++c, ++m) {
        const Vec<T> power = r[a] * r[b] * r[c];
        cube[0][m] = value * power;
        if constexpr (kGradient)
          for (int d = 0; d < 3; ++d) {
            Vec<T> v = slope * power * r[d];
            if (d == a) v += value * r[b] * r[c];
            if (d == b) v += value * r[a] * r[c];
            if (d == c) v += value * r[a] * r[b];
            cube[d + 1][m] = v;
          }
      }
  for (int d = 0; d < (kGradient ? 4 : 1); ++d)
    for (int n = 0; n < functions; ++n) {
      Vec<T> v = {};
      for (int k = 0; k < 10; ++k)
        if (pure[n * 10 + k] != T(0)) v += pure[n * 10 + k] * cube[d][k];
      rows.put(d, f + n, v);
    }
}

// The matrices of put_d and put_f, and how many functions each makes.
template <class T>
struct Pure {
  std::vector<T> d, f;
  int d_functions, f_functions;
};

// One shell on the points xyz[3][padded] about its nucleus; the first `count` of them exist.
template <class T, bool kGradient>
void shell_values(const ShellRow& shell, const T* exponents, const T* coefficients,
                  const Pure<T>& pure, const T* xyz, std::int64_t padded, std::int64_t count,
                  Vec<T>* gauss, T* out, std::int64_t plane) {
  const int* n = shell.contractions;
  const int columns = n[0] + n[1] + n[2] + n[3];
  T smallest = exponents[0], size = 1;
  for (int k = 0; k < shell.n_prim; ++k) smallest = std::fmin(smallest, exponents[k]);
  for (int k = 0; k < shell.n_prim * columns; ++k) size += std::fabs(coefficients[k]);
  // Beyond, sum |c| exp(-a r^2) < exp(-40) = 4e-18 (float64: 2e-35), times r^l for the value and
  // 2 a r^(l+1) for the gradient: nothing beside the densities that count, above 1e-11 (1e-15).
  const T cutoff = (std::is_same_v<T, float> ? T(40) : T(80)) + std::log(size);
  const int functions = n[0] + 3 * n[1] + pure.d_functions * n[2] + pure.f_functions * n[3];
  for (std::int64_t g = 0; g < count; g += kWidth<T>) {
    const int lanes = count - g < kWidth<T> ? count - g : kWidth<T>;
    const Rows<T> rows{out + g, plane, count, lanes};
    const Vec<T> r[3] = {load(xyz + g), load(xyz + padded + g), load(xyz + 2 * padded + g)};
    const Vec<T> square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    // All coefficients of an empty slot are zero.
    if (size == T(1) || !any<T>(~(smallest * square > cutoff))) {
      for (int d = 0; d < (kGradient ? 4 : 1); ++d)
        for (int f = 0; f < functions; ++f) rows.put(d, f, Vec<T>{});
      continue;
    }
    for (int k = 0; k < shell.n_prim; ++k) gauss[k] = exp_minus<T>(exponents[k] * square);
    int f = 0, column = 0;
    for (int l = 0; l < 4; ++l)
      for (int c = 0; c < n[l]; ++c, ++column) {
        Vec<T> value = {}, slope = {};
        for (int k = 0; k < shell.n_prim; ++k) {
          const T factor = coefficients[k * columns + column];
          value += factor * gauss[k];
          if constexpr (kGradient) slope += (T(-2) * exponents[k] * factor) * gauss[k];
        }
        if (l == 0) put_s<T, kGradient>(rows, f, value, slope, r);
        if (l == 1) put_p<T, kGradient>(rows, f, value, slope, r);
        if (l == 2)
          put_d<T, kGradient>(rows, f, value, slope, r, pure.d.data(), pure.d_functions);
        if (l == 3)
          put_f<T, kGradient>(rows, f, value, slope, r, pure.f.data(), pure.f_functions);
        f += l == 0 ? 1 : l == 1 ? 3 : l == 2 ? pure.d_functions : pure.f_functions;
      }
  }
}

// The points of a block about atom `a`; owners change rarely from point to point.
template <class T>
void relative(const T* local, const std::int32_t* owner, const T* high, const T* low,
              std::int64_t count, std::int64_t padded, std::int32_t a, T* xyz) {
  for (std::int64_t g = 0, end; g < count; g = end) {
    const std::int32_t o = owner[g];
    for (end = g + 1; end < count && owner[end] == o; ++end) {}
    for (int d = 0; d < 3; ++d) {
      const T shift = (high[3 * o + d] - high[3 * a + d]) + (low[3 * o + d] - low[3 * a + d]);
      for (std::int64_t k = g; k < end; ++k) xyz[d * padded + k] = local[d * padded + k] + shift;
    }
  }
}

// Sets to zero each of n AOs on every kScreened points where sum_g w_g sum_d ao_d^2 stays below
// `negligible` squared, and its element of live[points, N]; ao[D, N, count].
template <class T>
void leave_out(std::int64_t planes, std::int64_t n, std::int64_t count, const T* weights,
               T negligible, T* ao, T* live) {
  for (std::int64_t g = 0; g < count; g += kScreened, live += n) {
    const std::int64_t points = std::min(kScreened, count - g);
    alignas(64) T root[kScreened] = {};
    for (std::int64_t k = 0; k < points; ++k)
      root[k] = std::sqrt(std::fabs(weights[g + k])) / negligible;
    for (std::int64_t i = 0; i < n; ++i) {
      T* row = ao + i * count + g;
      Vec<T> sum = {};
      T size = 0;
      for (std::int64_t d = 0; d < planes; ++d) {
        const T* from = row + d * n * count;
        std::int64_t k = 0;
        for (; k + kWidth<T> <= points; k += kWidth<T>) {
          const Vec<T> v = load(from + k) * load(root + k);
          sum += v * v;
        }
        for (; k < points; ++k) size += from[k] * root[k] * (from[k] * root[k]);
      }
      for (int lane = 0; lane < kWidth<T>; ++lane) size += sum[lane];
      live[i] = size < T(1) ? T(0) : T(1);
      if (live[i] != T(0)) continue;
      for (std::int64_t d = 0; d < planes; ++d) std::fill_n(row + d * n * count, points, T(0));
    }
  }
}

// out[T, D, N, Gb]; D is 1 or 4; live[T, ceil(Gb / kScreened), N].
template <class T>
void ao_values(const AoProblem<T>& in, T* out, T* live) {
  const auto* shells = reinterpret_cast<const ShellRow*>(in.shells);
  const std::int64_t count = in.count, block = in.n_ao * count;
  const std::int64_t padded = (count + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  std::vector<T> local(3 * padded), xyz(3 * padded);
  const Pure<T> pure{{in.pure_d, in.pure_d + 6 * in.d_functions},
                     {in.pure_f, in.pure_f + 10 * in.f_functions}, in.d_functions, in.f_functions};
  int deepest = 0;
  for (std::int64_t s = 0; s < in.n_shells; ++s) deepest = std::max(deepest, shells[s].n_prim);
  std::vector<Vec<T>> gauss(deepest);
  const auto one = in.planes == 4 ? shell_values<T, true> : shell_values<T, false>;
  for (std::int64_t t = 0; t < in.tiles; ++t) {
    for (std::int64_t g = 0; g < count; ++g)
      for (int d = 0; d < 3; ++d) local[d * padded + g] = in.points[(t * count + g) * 3 + d];
    for (std::int64_t s = 0; s < in.n_shells; ++s) {
      const ShellRow& shell = shells[s];
      if (s == 0 || shell.atom != shells[s - 1].atom)
        relative(local.data(), in.owner + t * count, in.high, in.low, count, padded, shell.atom,
                 xyz.data());
      one(shell, in.exponents + shell.exponents, in.coefficients + shell.coefficients, pure,
          xyz.data(), padded, count, gauss.data(),
          out + t * in.planes * block + shell.first_ao * count, block);
    }
    const std::int64_t lists = (count + kScreened - 1) / kScreened * in.n_ao;
    if (in.negligible > 0)
      leave_out(in.planes, in.n_ao, count, in.weights + t * count, T(in.negligible),
                out + t * in.planes * block, live + t * lists);
    else
      std::fill_n(live + t * lists, lists, T(1));
  }
}

}  // namespace pyscf_ipu::ISA
