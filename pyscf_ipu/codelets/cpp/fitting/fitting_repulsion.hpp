// Coulomb and exchange matrices from B[functions, pairs]: the codelet "fitting_repulsion".
//
// One pass over B, a few functions at a time.  Of each, B_P is made square in panels of columns; then
// X_P = B_P C for the columns C of the density, and K += X_P X_P^T over one triangle.  Sums over few
// functions are in the working precision, those over all of them in double.
//
// A panel has only the rows of AOs that form a pair with one of its AOs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gemm.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

constexpr std::int64_t kTogether = 4;  // functions

// J: charges, and their field.
template <class T>
class FittedCoulomb {
 public:
  explicit FittedCoulomb(const RepulsionProblem<T>& problem) : problem_(problem), sums_(problem.pairs) {}

  void charge_of(std::int64_t f, T* charge) const {
    charge[f] = T(dot(problem_.row(f), problem_.density, problem_.pairs));
  }

  // The field of `count` charges from the first-th on.
  void add(std::int64_t first, std::int64_t count, const T* charge) {
    const T* rows[kTogether];
    T factor[kTogether];
    for (std::int64_t k = 0; k < kTogether; ++k) {
      rows[k] = problem_.row(first + std::min(k, count - 1));
      factor[k] = k < count ? charge[first + k] : T(0);
    }
    for (std::int64_t p = 0; p < problem_.pairs; ++p) {
      T sum = 0;
      for (std::int64_t k = 0; k < kTogether; ++k) sum += factor[k] * rows[k][p];
      sums_[p] += sum;
    }
  }

  void write(T* to) const { std::copy(sums_.begin(), sums_.end(), to); }

 private:
  static constexpr std::int64_t kStretch = 2048;  // elements whose products are added up at once

  static double dot(const T* a, const T* b, std::int64_t n) {
    double total = 0;
    for (std::int64_t first = 0; first < n; first += kStretch) {
      const std::int64_t end = std::min(n, first + kStretch);
      Vec<T> sums[4]{};
      std::int64_t i = first;
      for (; i + 4 * kWidth<T> <= end; i += 4 * kWidth<T>)
        for (int v = 0; v < 4; ++v)
          sums[v] += load(a + i + v * kWidth<T>) * load(b + i + v * kWidth<T>);
      for (; i < end; ++i) total += double(a[i]) * b[i];
      total += double(sum<T>((sums[0] + sums[1]) + (sums[2] + sums[3])));
    }
    return total;
  }

  const RepulsionProblem<T>& problem_;
  std::vector<double> sums_;
};

// Tiles of K's products: narrow ones, so that a panel has few AOs and leaves many out.
constexpr int kExchangeRows = VECTOR_BYTES == 64 ? 12 : kRows;
constexpr int kExchangeColumns = 2;

// The AO pairs that B has, for panels of kWide columns of a symmetric matrix of n AOs.
template <class T, std::int64_t kWide>
class FittedPairs {
  static constexpr std::int64_t kSquare = kWidth<T>;

 public:
  FittedPairs(const std::int32_t* present, std::int64_t n)
      : n_(n), squares_((n + kSquare - 1) / kSquare), some_(squares_ * squares_),
        rows_((n + kWide - 1) / kWide), place_(rows_.size() * n) {
    std::vector<char> row(place_.size());
    for (std::int64_t a = 0; a < n; ++a)
      for (std::int64_t b = 0; b <= a; ++b)
        if (*present++) {
          row[b / kWide * n + a] = row[a / kWide * n + b] = true;
          some_[a / kSquare * squares_ + b / kSquare] = true;
        }
    for (std::int64_t panel = 0; panel < panels(); ++panel) {
      const char* of = row.data() + panel * n;
      const std::int64_t count = std::count(of, of + n, true);
      for (std::int64_t a = 0; a < n; ++a) {
        const std::int64_t at = of[a] ? std::int64_t(rows_[panel].size()) : count;
        place_[panel * n + a] = (panel * (n + 1) + at) * kWide;
        if (of[a]) rows_[panel].push_back(std::int32_t(a));
      }
    }
  }

  std::int64_t panels() const { return rows_.size(); }
  // The AOs of a panel's rows.
  const std::vector<std::int32_t>& rows(std::int64_t panel) const { return rows_[panel]; }
  // Elements of all panels, each with one more row, where the others may be written.
  std::int64_t size() const { return panels() * (n_ + 1) * kWide; }
  std::int64_t first(std::int64_t panel) const { return panel * (n_ + 1) * kWide; }
  std::int64_t place(std::int64_t a, std::int64_t b) const { return place_[b / kWide * n_ + a] + b % kWide; }
  // Whether any pair a >= b is in a square, whose first AOs are multiples of its size.
  bool any(std::int64_t a, std::int64_t b) const { return some_[a / kSquare * squares_ + b / kSquare]; }

 private:
  const std::int64_t n_, squares_;
  std::vector<char> some_;
  std::vector<std::vector<std::int32_t>> rows_;
  std::vector<std::int64_t> place_;
};

// K.  Columns of a symmetric matrix of n AOs are in panels [panel][rows][kWide].
template <class T>
class FittedExchange {
  static constexpr int kR = kExchangeRows, kC = kExchangeColumns;
  static constexpr std::int64_t kWide = kC * kWidth<T>;

 public:
  explicit FittedExchange(const RepulsionProblem<T>& problem)
      : n_(problem.n), count_(problem.count), blocks_((count_ + kR - 1) / kR),
        pairs_(problem.present, n_), panels_(pairs_.panels()), columns_(blocks_ * n_ * kR),
        square_(pairs_.size() / kWidth<T>), half_(panels_ * terms() * kC), matrix_(panels_ * n_ * kWide) {
    for (std::int64_t i = 0; i < count_; ++i) {
      for (std::int64_t a = 0; a < n_; ++a)
        columns_[((i / kR) * n_ + a) * kR + i % kR] = problem.vectors[a * problem.width + i];
      signed_ |= problem.signs[i] < 0;
    }
    for (std::int64_t k = 0; k < terms(); ++k) signs_.push_back(problem.signs[k % count_]);
    if (signed_) left_.resize(half_.size());
  }

  // X of the k-th of some functions, whose B_P is `b`; that of the next one is fetched meanwhile.
  template <class Next>
  void transform(std::int64_t k, const T* b, const Next* next) {
    make_square(b);
    const std::int64_t pairs = n_ * (n_ + 1) / 2, stretch = pairs / (panels_ * blocks_) + 1;
    for (std::int64_t panel = 0, done = 0; panel < panels_; ++panel)
      for (std::int64_t block = 0; block < blocks_; ++block, done += stretch) {
        for (std::int64_t i = done; i < std::min(done + stretch, pairs); i += 64 / sizeof(Next))
          __builtin_prefetch(next + i, 0, 2);
        transform_tile(k, panel, block);
      }
  }

  // K of the first `count` of these functions.
  void add(std::int64_t count) {
    if (signed_)
      for (std::size_t i = 0; i < half_.size(); ++i) left_[i] = signs_[i / kC % terms()] * half_[i];
    const T* left = elements(signed_ ? left_ : half_);
    for (std::int64_t panel = 0; panel < panels_; ++panel)
      for (std::int64_t a = panel * kWide; a < n_; a += kR) add_tile(left, a, panel, count * count_);
  }

  // Over AO pairs a >= b.
  template <class To>
  void write(To* to) const {
    for (std::int64_t a = 0; a < n_; ++a)
      for (std::int64_t b = 0; b <= a; ++b) *to++ = To(matrix_[(b / kWide * n_ + a) * kWide + b % kWide]);
  }

 private:
  std::int64_t terms() const { return kTogether * count_; }

  static T* elements(std::vector<Vec<T>>& of) { return reinterpret_cast<T*>(of.data()); }

  T* place(std::int64_t a, std::int64_t b) { return elements(square_) + pairs_.place(a, b); }

  // Both triangles from the lower one, in squares of kWidth.
  void make_square(const T* packed) {
    constexpr int w = kWidth<T>;
    const auto row = [&](std::int64_t a) { return packed + a * (a + 1) / 2; };
    std::int64_t a = 0;
    for (; a + w <= n_; a += w) {
      for (std::int64_t b = 0; b < a; b += w) {
        if (!pairs_.any(a, b)) continue;
        Vec<T> rows[w];
#pragma GCC unroll 16
        for (int r = 0; r < w; ++r) {
          rows[r] = load(row(a + r) + b);
          store(place(a + r, b), rows[r]);
        }
        transpose<T>(rows);
#pragma GCC unroll 16
        for (int r = 0; r < w; ++r) store(place(b + r, a), rows[r]);
      }
      by_elements(row, a, a + w, a);
    }
    by_elements(row, a, n_, 0);
  }

  // Rows first .. end - 1, from the column `from` on.
  template <class Row>
  void by_elements(Row row, std::int64_t first, std::int64_t end, std::int64_t from) {
    for (std::int64_t a = first; a < end; ++a)
      for (std::int64_t b = from; b <= a; ++b) *place(a, b) = *place(b, a) = row(a)[b];
  }

  // half[panel][k * count + i][column] = sum_a C[a, i] B[a, column] for the AOs a of the panel.
  void transform_tile(std::int64_t k, std::int64_t panel, std::int64_t block) {
    T* to = elements(half_) + (panel * terms() + k * count_ + block * kR) * kWide;
    by_number<kR>(count_ - block * kR, [&](auto rows) { transform_rows<rows>(panel, block, to); });
  }

  template <int rows>
  void transform_rows(std::int64_t panel, std::int64_t block, T* to) {
    const T* b = elements(square_) + pairs_.first(panel);
    const T* c = columns_.data() + block * n_ * kR;
    const std::vector<std::int32_t>& aos = pairs_.rows(panel);
    Vec<T> sums[rows][kC];
    multiply<T, rows, kC>([&](int r, std::int64_t a) { return c[std::int64_t(aos[a]) * kR + r]; },
                          [&](std::int64_t a) { return b + a * kWide; }, aos.size(), sums);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kC; ++v) store(to + r * kWide + v * kWidth<T>, sums[r][v]);
  }

  // K of kR AOs from a on, and of a panel.
  void add_tile(const T* left, std::int64_t a, std::int64_t panel, std::int64_t count) {
    const T* rows[kR];
    for (int r = 0; r < kR; ++r) {
      const std::int64_t at = std::min(a + r, n_ - 1);
      rows[r] = left + at / kWide * terms() * kWide + at % kWide;
    }
    const T* b = elements(half_) + panel * terms() * kWide;
    Vec<T> sums[kR][kC];
    multiply<T>([&](int r, std::int64_t k) { return rows[r][k * kWide]; },
                [&](std::int64_t k) { return b + k * kWide; }, count, sums);
    for (int r = 0; r < kR && a + r < n_; ++r) {
      double* to = matrix_.data() + (panel * n_ + a + r) * kWide;
      const T* from = reinterpret_cast<const T*>(sums[r]);
      for (std::int64_t c = 0; c < kWide; ++c) to[c] += from[c];
    }
  }

  const std::int64_t n_, count_, blocks_;
  const FittedPairs<T, kWide> pairs_;
  const std::int64_t panels_;
  std::vector<T> columns_, signs_;  // C in blocks [block][n][kR]
  std::vector<Vec<T>> square_, half_, left_;
  std::vector<double> matrix_;  // K in panels
  bool signed_ = false;
};

// J, and K by `k`; row(f) is B_P of the f-th function in the precision of K.
template <class T, class S, class Row>
void coulomb_and_exchange(const RepulsionProblem<T>& problem, FittedExchange<S>& k, Row row, T* charge,
                          T* coulomb, T* exchange) {
  FittedCoulomb<T> j(problem);
  for (std::int64_t first = 0; first < problem.functions; first += kTogether) {
    const std::int64_t end = std::min(first + kTogether, problem.functions);
    for (std::int64_t f = first; f < end; ++f) {
      if (problem.with_coulomb) j.charge_of(f, charge);
      if (problem.count)
        k.transform(f - first, row(f), problem.row(std::min(f + 1, problem.functions - 1)));
    }
    if (problem.with_coulomb) j.add(first, end - first, charge);
    if (problem.count) k.add(end - first);
  }
  j.write(coulomb);
  k.write(exchange);
}

template <class T>
void fitting_repulsion(const RepulsionProblem<T>& problem, T* charge, T* coulomb, T* exchange) {
  if (!problem.rough) {
    FittedExchange<T> k(problem);
    const auto row = [&](std::int64_t f) { return problem.row(f); };
    return coulomb_and_exchange(problem, k, row, charge, coulomb, exchange);
  }
  const std::vector<float> vectors(problem.vectors, problem.vectors + problem.n * problem.width),
      signs(problem.signs, problem.signs + problem.width);
  std::vector<float> rounded(problem.pairs);
  FittedExchange<float> k({nullptr, problem.present, nullptr, vectors.data(), signs.data(),
                           problem.functions, problem.pairs, problem.n, problem.width, problem.count,
                           false, false});
  const auto row = [&](std::int64_t f) {
    std::copy_n(problem.row(f), problem.pairs, rounded.data());
    return rounded.data();
  };
  coulomb_and_exchange(problem, k, row, charge, coulomb, exchange);
}

}  // namespace pyscf_ipu::ISA
