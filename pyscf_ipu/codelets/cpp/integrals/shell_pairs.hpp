// Shell pairs as Hermite charge distributions; see integrals/shell_pairs.py.
//
// Primitive pairs lie on the vector lanes.  The arithmetic is that of the portable form, operation by
// operation where two words are kept; only the exponential and the order of some sums differ.  Pairs
// in float are computed in double and rounded once, which the portable form does not do.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "hermite.hpp"
#include "kernels.hpp"

namespace pyscf_ipu::ISA {

// Dekker's product.  Where the compiler contracts into fused multiply-adds it gets more exact.
template <class T>
inline TwoWords<T> exact_product(Vec<T> a, Vec<T> b) {
  constexpr T factor = sizeof(T) == 4 ? T(4097) : T(134217729);
  const auto upper = [](Vec<T> x) {
    const Vec<T> c = x * factor, rest = c - x;
    return c - rest;
  };
  const Vec<T> p = a * b, a1 = upper(a), b1 = upper(b), a2 = a - a1, b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

// A matrix of doubles in two words of T; empty if it is the unit matrix.
template <class T>
struct Transform {
  int rows, columns;
  std::vector<T> high, low;

  explicit Transform(const PairShells<T>& shells)
      : rows(shells.functions), columns(shells.components) {
    bool unit = rows == columns;
    for (int i = 0; unit && i < rows * columns; ++i)
      unit = shells.transform[i] == (i / columns == i % columns ? 1.0 : 0.0);
    if (unit) return;
    for (int i = 0; i < rows * columns; ++i) {
      high.push_back(T(shells.transform[i]));
      low.push_back(T(shells.transform[i] - double(high.back())));
    }
  }

  // values[outer, columns, inner] -> [outer, rows, inner], through `scratch`.
  void operator()(std::vector<Vec<T>>& values, std::vector<Vec<T>>& scratch, int outer,
                  int inner) const {
    if (high.empty()) return;
    for (int o = 0; o < outer; ++o)
      for (int r = 0; r < rows; ++r)
        for (int i = 0; i < inner; ++i) {
          Vec<T> first = {}, second = {};
          for (int c = 0; c < columns; ++c) {
            const Vec<T> v = values[(o * columns + c) * inner + i];
            first += high[r * columns + c] * v;
            second += low[r * columns + c] * v;
          }
          scratch[(o * rows + r) * inner + i] = first + second;
        }
    values.swap(scratch);
  }
};

// For shells up to angular momentum kMostL; `derivatives` of the pairs' data take as many powers more.
template <class T, int kMostL, int derivatives = 0>
struct PairsVertex {
  static constexpr int kL = kMostL + 1 + derivatives;  // the kinetic energy takes one more
  static constexpr int kT = 2 * kL + 2;         // zeros stand behind the highest degree

  const PairProblem<T>& in;
  Transform<T> to_a{in.a}, to_b{in.b};
  const int rows = n_hermite(in.order), stride = rows + 1;  // the kinetic energy comes last
  std::vector<Vec<T>> values, scratch;
  Vec<T> table[3][kL + 1][kL + 1][kT];
  int powers[n_hermite(2 * kMostL)][3];
  // Of the primitive pairs on the lanes: exponents, their sum and its rounding, centre, and overlap.
  Vec<T> ea, eb, p, error, high[3], low[3], overlap;

  void operator()() {
    begin();
    const std::int64_t depth = in.a.primitives * in.b.primitives;
    std::fill_n(in.kinetic, in.pairs * in.a.functions * in.b.functions, T(0));
    for (std::int64_t first = 0; first < in.pairs * depth; first += kWidth<T>)
      lanes(first, std::min<std::int64_t>(kWidth<T>, in.pairs * depth - first));
  }

  void begin() {
    const int most = std::max(in.a.components, in.a.functions) *
                     std::max(in.b.components, in.b.functions) * stride;
    values.resize(most);
    scratch.resize(most);
    for_each_row(in.order, [this](int t, int u, int v) {
      int* row = powers[hermite_row(t, u, v)];
      row[0] = t, row[1] = u, row[2] = v;
    });
  }

  // Which of a side's entries stand on the lanes of primitive pairs first, first + 1, ...
  struct Lanes {
    std::int64_t shell[kWidth<T>], primitive[kWidth<T>];
  };

  static Vec<T> gather(const T* from, const std::int64_t* at, int stride = 1, int offset = 0) {
    Vec<T> v;
    for (int lane = 0; lane < kWidth<T>; ++lane) v[lane] = from[at[lane] * stride + offset];
    return v;
  }

  // Geometry and tables of primitive pairs first .. first + count - 1 (repeating the last one).
  void prepare(std::int64_t first, int count, Lanes& a, Lanes& b) {
    const std::int64_t depth = in.a.primitives * in.b.primitives;
    for (int lane = 0; lane < kWidth<T>; ++lane) {
      const std::int64_t at = first + std::min(lane, count - 1), k = at % depth;
      a.shell[lane] = in.a.index[at / depth];
      b.shell[lane] = in.b.index[at / depth];
      a.primitive[lane] = a.shell[lane] * in.a.primitives + k / in.b.primitives;
      b.primitive[lane] = b.shell[lane] * in.b.primitives + k % in.b.primitives;
    }
    ea = gather(in.a.exponents, a.primitive), eb = gather(in.b.exponents, b.primitive);
    const TwoWords<T> sum = exact_sum<T>(ea, eb);
    p = sum.high;
    const Vec<T> inverse = T(1) / p;
    error = sum.low + gather(in.a.exponents_low, a.primitive) +
                         gather(in.b.exponents_low, b.primitive);
    Vec<T> square = {};
    for (int d = 0; d < 3; ++d) {
      const Vec<T> a_high = gather(in.a.high, a.shell, 3, d), a_low = gather(in.a.low, a.shell, 3, d);
      const Vec<T> ab = (a_high - gather(in.b.high, b.shell, 3, d)) +
                        (a_low - gather(in.b.low, b.shell, 3, d));
      const Vec<T> pa = (-eb / p) * ab;
      square += ab * ab;
      const TwoWords<T> centre = exact_sum<T>(a_high, pa);
      high[d] = centre.high, low[d] = centre.low + a_low;
      fill_table(table[d], T(0.5) * inverse, pa, (ea / p) * ab);
    }
    overlap = exp_minus<T>((ea * eb / p) * square);
  }

  void lanes(std::int64_t first, int count) {
    Lanes a, b;
    prepare(first, count, a, b);
    products(gaussian(p) * overlap);
    // What is computed with is exp(-p r^2) with the rounded p; keep the charge of the true one.
    const Vec<T> charge = T(-1.5) * error / p;
    const auto coefficient = [&](const PairShells<T>& s, const Lanes& at, int component) {
      const int column = s.powers[4 * component + 3];
      return TwoWords<T>{gather(s.coefficients, at.primitive, s.columns, column),
                         gather(s.coefficients_low, at.primitive, s.columns, column)};
    };
    for (int ca = 0; ca < in.a.components; ++ca) {
      const TwoWords<T> wa = coefficient(in.a, a, ca);
      for (int cb = 0; cb < in.b.components; ++cb) {
        const TwoWords<T> wb = coefficient(in.b, b, cb), w = exact_product<T>(wa.high, wb.high);
        const Vec<T> rest = w.low + wa.high * wb.low + wa.low * wb.high + w.high * charge;
        Vec<T>* v = &values[(ca * in.b.components + cb) * stride];
        for (int h = 0; h < stride; ++h) v[h] = v[h] * w.high + v[h] * rest;
      }
    }
    to_a(values, scratch, 1, in.b.components * stride);
    to_b(values, scratch, in.a.functions, stride);
    put(first, count);
  }

  // E_t^{ij} of one dimension without the overlap: Helgaker, Jorgensen, Olsen, eq. 9.5.6-7.
  void fill_table(Vec<T> (&e)[kL + 1][kL + 1][kT], Vec<T> half, Vec<T> pa, Vec<T> pb) const {
    const auto step = [half](const Vec<T>* from, Vec<T> shift, Vec<T>* to) {
      for (int t = 0; t + 1 < kT; ++t) {
        const Vec<T> lower = t ? Vec<T>(half * from[t - 1]) : Vec<T>{};
        to[t] = lower + shift * from[t] + T(t + 1) * from[t + 1];
      }
      to[kT - 1] = Vec<T>{};
    };
    for (auto& v : e[0][0]) v = Vec<T>{};
    e[0][0][0] = splat<T>(T(1));
    for (int i = 0; i <= in.a.highest + 1 + derivatives; ++i) {
      if (i) step(e[i - 1][0], pa, e[i][0]);
      for (int j = 1; j <= in.b.highest + 1; ++j) step(e[i][j - 1], pb, e[i][j]);
    }
  }

  // values[ca, cb, h]: E of the products of cartesian components, and behind them the kinetic energy.
  void products(Vec<T> gauss) {
    for (int ca = 0; ca < in.a.components; ++ca)
      for (int cb = 0; cb < in.b.components; ++cb) {
        const std::int32_t *i = in.a.powers + 4 * ca, *j = in.b.powers + 4 * cb;
        Vec<T>* out = &values[(ca * in.b.components + cb) * stride];
        for (int h = 0; h < rows; ++h)
          out[h] = table[0][i[0]][j[0]][powers[h][0]] * table[1][i[1]][j[1]][powers[h][1]] *
                   table[2][i[2]][j[2]][powers[h][2]] * overlap;
        Vec<T> s[3], t[3];
        for (int d = 0; d < 3; ++d) {
          s[d] = table[d][i[d]][j[d]][0];
          t[d] = kinetic(table[d], i[d], j[d], ea, eb);
        }
        out[rows] = (t[0] * s[1] * s[2] + s[0] * t[1] * s[2] + s[0] * s[1] * t[2]) * gauss;
      }
  }

  // 1/2 <grad a | grad b> of one dimension, in the symmetric form that does not cancel.
  Vec<T> kinetic(const Vec<T> (&e)[kL + 1][kL + 1][kT], int i, int j, Vec<T> a, Vec<T> b) const {
    Vec<T> value = T(2) * a * b * e[i + 1][j + 1][0];
    if (j) value -= T(j) * a * e[i + 1][j - 1][0];
    if (i) value -= T(i) * b * e[i - 1][j + 1][0];
    if (i && j) value += T(0.5 * i * j) * e[i - 1][j - 1][0];
    return value;
  }

  // (pi/p)^(3/2), the constant in two words.
  static Vec<T> gaussian(Vec<T> p) {
    constexpr long double constant = 5.568327996831707845284817982118835702L;
    constexpr T word = T(constant), rest = T(constant - (long double)word);
    const Vec<T> x = T(1) / (p * square_root<T>(p));
    return x * word + x * rest;
  }

  void put(std::int64_t first, int count) {
    const int functions = in.a.functions * in.b.functions;
    const std::int64_t depth = in.a.primitives * in.b.primitives;
    for (int lane = 0; lane < count; ++lane) {
      const std::int64_t at = first + lane;
      in.p[at] = p[lane];
      for (int d = 0; d < 3; ++d)
        in.high[3 * at + d] = high[d][lane], in.low[3 * at + d] = low[d][lane];
      T* e = in.e + at * functions * rows;
      T* kinetic = in.kinetic + at / depth * functions;
      for (int f = 0; f < functions; ++f) {
        for (int h = 0; h < rows; ++h) e[f * rows + h] = values[f * stride + h][lane];
        kinetic[f] += values[f * stride + rows][lane];
      }
    }
  }
};

template <class T>
void pairs_of(const PairProblem<T>& problem) {
  if (std::max(problem.a.highest, problem.b.highest) <= 2)
    PairsVertex<T, 2>{problem}();
  else
    PairsVertex<T, 3>{problem}();
}

// Pairs of shells in float: computed in double, some at a time, and rounded once.
class RoundedPairs {
 public:
  explicit RoundedPairs(const PairProblem<float>& of)
      : to(of), a(of.a, of.pairs), b(of.b, of.pairs), depth(of.a.primitives * of.b.primitives),
        functions(of.a.functions * of.b.functions), rows(n_hermite(of.order)) {}

  void operator()() {
    constexpr std::int64_t most = 64;
    for (std::int64_t first = 0; first < to.pairs; first += most)
      block(first, std::min(most, to.pairs - first));
  }

 private:
  struct WideShells {
    std::vector<double> exponents, coefficients, centres, none;
    PairShells<double> shells;

    WideShells(const PairShells<float>& s, std::int64_t pairs) {
      std::int64_t count = 0;
      for (std::int64_t i = 0; i < pairs; ++i) count = std::max<std::int64_t>(count, s.index[i] + 1);
      exponents = sums(s.exponents, s.exponents_low, count * s.primitives);
      coefficients = sums(s.coefficients, s.coefficients_low, count * s.primitives * s.columns);
      centres = sums(s.high, s.low, 3 * count);
      none.assign(std::max(coefficients.size(), centres.size()), 0.0);
      shells = {exponents.data(), none.data(), coefficients.data(), none.data(), centres.data(),
                none.data(), s.index, s.powers, s.transform, s.primitives, s.columns, s.components,
                s.functions, s.highest};
    }

    static std::vector<double> sums(const float* high, const float* low, std::int64_t n) {
      std::vector<double> found(n);
      for (std::int64_t i = 0; i < n; ++i) found[i] = double(high[i]) + low[i];
      return found;
    }

    PairShells<double> from(std::int64_t pair) const {
      PairShells<double> later = shells;
      later.index += pair;
      return later;
    }
  };

  const PairProblem<float>& to;
  const WideShells a, b;
  const std::int64_t depth;
  const int functions, rows;
  std::vector<double> p, high, low, e, kinetic;

  void block(std::int64_t first, std::int64_t pairs) {
    const std::int64_t primitives = pairs * depth;
    p.resize(primitives), high.resize(3 * primitives), low.resize(3 * primitives);
    e.resize(primitives * functions * rows), kinetic.resize(pairs * functions);
    pairs_of<double>({a.from(first), b.from(first), pairs, to.order, p.data(), high.data(),
                      low.data(), e.data(), kinetic.data()});
    for (std::int64_t at = 0; at < primitives; ++at) centre(at, first * depth + at);
    std::copy(kinetic.begin(), kinetic.end(), to.kinetic + first * functions);
    for (std::int64_t pair = 0; pair < pairs; ++pair)
      for (int f = 0; f < functions; ++f) charge(pair * depth, (first + pair) * depth, f);
  }

  // Exponent, centre and E of a primitive pair.  What is computed with is exp(-p r^2) with the
  // rounded p: E keeps the charge of the true one.
  void centre(std::int64_t from, std::int64_t at) {
    to.p[at] = static_cast<float>(p[from]);
    const double ratio = to.p[at] / p[from], factor = ratio * std::sqrt(ratio);
    for (int d = 0; d < 3; ++d) {
      const double x = high[3 * from + d] + low[3 * from + d];
      to.high[3 * at + d] = static_cast<float>(x);
      to.low[3 * at + d] = static_cast<float>(x - to.high[3 * at + d]);
    }
    for (int i = 0; i < functions * rows; ++i) {
      e[from * functions * rows + i] *= factor;
      to.e[at * functions * rows + i] = static_cast<float>(e[from * functions * rows + i]);
    }
  }

  // The rounding errors of the primitives' charges, handed on to the next one and at last to the
  // smallest: they are the same for every atom of an element, a bias.
  void charge(std::int64_t from, std::int64_t at, int f) {
    double carry = 0, least = 0;
    std::int64_t smallest = -1;
    for (std::int64_t k = 0; k < depth; ++k) {
      float& rounded = to.e[((at + k) * functions + f) * rows];
      const double gauss = gaussian(at + k), exact = e[((from + k) * functions + f) * rows];
      if (exact == 0) continue;
      rounded = static_cast<float>(exact + carry / gauss);
      carry += (exact - rounded) * gauss;
      const double size = std::abs(exact) * gauss;
      if (smallest < 0 || size < least) smallest = k, least = size;
    }
    if (smallest < 0) return;
    float& rounded = to.e[((at + smallest) * functions + f) * rows];
    rounded = static_cast<float>(rounded + carry / gaussian(at + smallest));
  }

  double gaussian(std::int64_t at) const { return 1 / (to.p[at] * std::sqrt(double(to.p[at]))); }
};

template <class T>
void shell_pairs(const PairProblem<T>& problem) {
  if constexpr (std::is_same_v<T, float>)
    RoundedPairs{problem}();
  else
    pairs_of<T>(problem);
}

}  // namespace pyscf_ipu::ISA
