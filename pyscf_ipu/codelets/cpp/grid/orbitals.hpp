// Values and gradients of the AOs on blocks of grid points; see grid/ao_values.py.
//
// One shell at a time on all points of a block: its rows of the result are written once, in order,
// and the coordinates relative to its nucleus stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "grid/contraction.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

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

  explicit Pure(const AoProblem<T>& in)
      : d(in.pure_d, in.pure_d + 6 * in.d_functions), f(in.pure_f, in.pure_f + 10 * in.f_functions),
        d_functions(in.d_functions), f_functions(in.f_functions) {}

  int functions(const ShellRow& shell) const {
    const auto* n = shell.contractions;
    return n[0] + 3 * n[1] + d_functions * n[2] + f_functions * n[3];
  }
};

// One shell on the points xyz[3][padded] about its nucleus; the first `count` of them exist.
template <class T, bool kGradient>
void shell_values(const ShellRow& shell, const Contraction<T>& of,
                  const Pure<T>& pure, const T* xyz, std::int64_t padded, std::int64_t count,
                  std::vector<Vec<T>>& gauss, T* out, std::int64_t plane) {
  const int* n = shell.contractions;
  const int columns = shell.columns();
  // Beyond, sum |c| exp(-a r^2) < exp(-40) = 4e-18 (float64: 2e-35), times r^l for the value and
  // 2 a r^(l+1) for the gradient: nothing beside the densities that count, above 1e-11 (1e-15).
  const T cutoff = (std::is_same_v<T, float> ? T(40) : T(80)) + std::log(of.size);
  const int functions = pure.functions(shell);
  for (std::int64_t g = 0; g < count; g += kWidth<T>) {
    const int lanes = count - g < kWidth<T> ? count - g : kWidth<T>;
    const Rows<T> rows{out + g, plane, count, lanes};
    const Vec<T> r[3] = {load(xyz + g), load(xyz + padded + g), load(xyz + 2 * padded + g)};
    const Vec<T> square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    // All coefficients of an empty slot are zero.
    if (of.size == T(1) || !any<T>(~(of.smallest * square > cutoff))) {
      for (int d = 0; d < (kGradient ? 4 : 1); ++d)
        for (int f = 0; f < functions; ++f) rows.put(d, f, Vec<T>{});
      continue;
    }
    for (int k = 0; k < shell.n_prim; ++k)
      gauss[k] = exp_minus<T>(of.exponent[k].low * square + of.exponent[k].high * square);
    int f = 0, column = 0;
    for (int l = 0; l < 4; ++l)
      for (int c = 0; c < n[l]; ++c, ++column) {
        const Vec<T> value = of.sum(of.value, column, columns, gauss, shell.n_prim);
        Vec<T> slope = {};
        if constexpr (kGradient) slope = of.sum(of.slope, column, columns, gauss, shell.n_prim);
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

// AOs on the blocks of a problem, one block after another.
template <class T>
class AoMaker {
 public:
  explicit AoMaker(const AoProblem<T>& in)
      : in_(in), padded_((in.count + kWidth<T> - 1) / kWidth<T> * kWidth<T>), local_(3 * padded_),
        xyz_(3 * padded_), pure_(in) {
    int deepest = 0;
    for (std::int64_t s = 0; s < in.n_shells; ++s) deepest = std::max(deepest, shells()[s].n_prim);
    gauss_.resize(deepest);
  }

  // out[D, N, Gb] of block t; D is 1 or 4.
  void make(std::int64_t t, T* out) {
    const std::int64_t count = in_.count;
    for (std::int64_t g = 0; g < count; ++g)
      for (int d = 0; d < 3; ++d) local_[d * padded_ + g] = in_.points[(t * count + g) * 3 + d];
    const auto one = in_.planes == 4 ? shell_values<T, true> : shell_values<T, false>;
    for (std::int64_t s = 0; s < in_.n_shells; ++s) {
      const ShellRow& shell = shells()[s];
      if (s == 0 || shell.atom != shells()[s - 1].atom)
        relative(local_.data(), in_.owner + t * count, in_.high, in_.low, count, padded_,
                 shell.atom, xyz_.data());
      contraction_.read(in_, shell);
      one(shell, contraction_, pure_, xyz_.data(), padded_, count, gauss_,
          out + shell.first_ao * count, in_.n_ao * count);
    }
  }

 private:
  const ShellRow* shells() const { return reinterpret_cast<const ShellRow*>(in_.shells); }

  const AoProblem<T>& in_;
  const std::int64_t padded_;
  std::vector<T> local_, xyz_;
  const Pure<T> pure_;
  std::vector<Vec<T>> gauss_;
  Contraction<T> contraction_;
};

// out[T, D, N, Gb].
template <class T>
void ao_values(const AoProblem<T>& in, T* out) {
  AoMaker<T> maker(in);
  for (std::int64_t t = 0; t < in.tiles; ++t) maker.make(t, out + t * in.planes * in.n_ao * in.count);
}

// sum_g scale_g^2 sum_d ao_d^2 of one AO; ao[D, plane], `scale` with whole vectors.
template <class T>
T size_of(const T* ao, std::int64_t planes, std::int64_t plane, std::int64_t count,
          const T* scale) {
  Vec<T> sum = {};
  T size = 0;
  for (std::int64_t d = 0; d < planes; ++d, ao += plane) {
    std::int64_t g = 0;
    for (; g + kWidth<T> <= count; g += kWidth<T>) {
      const Vec<T> v = load(ao + g) * load(scale + g);
      sum += v * v;
    }
    for (; g < count; ++g) size += ao[g] * scale[g] * (ao[g] * scale[g]);
  }
  for (int lane = 0; lane < kWidth<T>; ++lane) size += sum[lane];
  return size;
}

// The same on blocks of up to kScreened points, with the AOs that count first, which aos[T, N] has;
// they are count[T].  What values[T, D, N, Gb] has beyond them is not written.
template <class T>
void packed_ao_values(const AoProblem<T>& in, const Screen<T>& screen, T* values,
                      std::int32_t* aos, std::int32_t* count) {
  const std::int64_t points = in.count, n = in.n_ao, plane = n * points;
  AoMaker<T> maker(in);
  std::vector<T> all(in.planes * plane), scale(points);
  for (std::int64_t t = 0; t < in.tiles; ++t, values += in.planes * plane, aos += n) {
    for (std::int64_t g = 0; g < points; ++g)
      scale[g] = std::sqrt(std::fabs(screen.weights[t * points + g])) / screen.negligible;
    maker.make(t, all.data());
    std::int64_t live = 0, dead = n;
    for (std::int64_t i = n - 1; i >= 0; --i)
      if (size_of(all.data() + i * points, in.planes, plane, points, scale.data()) < T(1))
        aos[--dead] = std::int32_t(i);
      else
        ++live;
    // The others fill the places before, in order.
    for (std::int64_t i = 0, k = 0, next = dead; i < n; ++i) {
      if (next < n && aos[next] == i) {
        ++next;
        continue;
      }
      for (std::int64_t d = 0; d < in.planes; ++d)
        std::copy_n(all.data() + d * plane + i * points, points, values + d * plane + k * points);
      aos[k++] = std::int32_t(i);
    }
    count[t] = std::int32_t(live);
  }
}

}  // namespace pyscf_ipu::ISA
