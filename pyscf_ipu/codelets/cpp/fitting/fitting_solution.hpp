// B of density fitting, L B^T = (P|ab)^T with the Cholesky factor L of the metric: the codelet
// "fitting_solution".
//
// Forward substitution in double on a panel of AO pairs: some functions are solved, then taken from all
// later ones, while they stay in the second cache.  B is written in the precision of the SCF, with
// which AO pairs have any, and nothing else is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gemm.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

constexpr std::int64_t kPanelPairs = 256;
constexpr std::int64_t kSolved = 80;  // blocks of functions that are solved before others read them

// Elements of B below this are set to zero: far below the rounding of those that matter.
template <class T>
constexpr double kVanishing = std::is_same_v<T, float> ? 1e-9 : 1e-16;

// The factor in blocks of kRows functions: before the diagonal, [k][kRows]; then the diagonal block
// by rows, its own diagonal inverted.  Functions that fill the last block up are zero.
class Substitution {
 public:
  static constexpr int kWide = kColumns * kWidth<double>;  // AO pairs of a tile

  Substitution(const double* factor, std::int64_t n) : blocks_((n + kRows - 1) / kRows) {
    packed_.reserve(blocks_ * kRows * (blocks_ * kRows + kRows) / 2 + blocks_ * kRows * kRows);
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return i < n && j < n ? factor[i * n + j] : double(i == j);
    };
    for (std::int64_t first = 0; first < blocks_ * kRows; first += kRows) {
      for (std::int64_t k = 0; k < first; ++k)
        for (int r = 0; r < kRows; ++r) packed_.push_back(at(first + r, k));
      for (int r = 0; r < kRows; ++r)
        for (int s = 0; s < kRows; ++s)
          packed_.push_back(r == s ? 1 / at(first + r, first + r) : at(first + r, first + s));
    }
  }

  std::int64_t functions() const { return blocks_ * kRows; }

  // Solves in place for `tiles` tiles [functions][kWide], one behind another.
  void operator()(double* x, std::int64_t tiles) const {
    for (std::int64_t first = 0; first < blocks_; first += kSolved) {
      const std::int64_t end = std::min(first + kSolved, blocks_);
      for (std::int64_t block = first; block < end; ++block)
        for (std::int64_t t = 0; t < tiles; ++t)
          solve(take(block, first, block, x + t * functions() * kWide), row(block) + block * kEach);
      for (std::int64_t block = end; block < blocks_; ++block)
        for (std::int64_t t = 0; t < tiles; ++t) take(block, first, end, x + t * functions() * kWide);
    }
  }

 private:
  static constexpr std::int64_t kEach = kRows * kRows;

  const double* row(std::int64_t block) const { return packed_.data() + kEach * block * (block + 1) / 2; }

  // Takes the products with the solved blocks first .. end - 1 from a block; where it is.
  double* take(std::int64_t block, std::int64_t first, std::int64_t end, double* x) const {
    const double* a = row(block) + first * kEach;
    const double* from = x + first * kRows * kWide;
    double* to = x + block * kRows * kWide;
    Vec<double> sums[kRows][kColumns];
    multiply<double>([&](int r, std::int64_t k) { return a[k * kRows + r]; },
                     [&](std::int64_t k) { return from + k * kWide; }, (end - first) * kRows, sums);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        double* at = to + r * kWide + c * kWidth<double>;
        store(at, load(at) - sums[r][c]);
      }
    return to;
  }

  // Of one block by itself, with its part of the diagonal.
  static void solve(double* x, const double* diagonal) {
    for (int c = 0; c < kColumns; ++c) {
      Vec<double> v[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        double* at = x + r * kWide + c * kWidth<double>;
        v[r] = load(at);
#pragma GCC unroll 8
        for (int s = 0; s < r; ++s) v[r] -= diagonal[r * kRows + s] * v[s];
        v[r] *= diagonal[r * kRows + r];
        store(at, v[r]);
      }
    }
  }

  const std::int64_t blocks_;
  std::vector<double> packed_;
};

// The integrals of up to kWide AO pairs as a tile [functions][kWide]; whether any is not zero.
inline bool gather_tile(const SolutionProblem& problem, std::int64_t first, double* tile) {
  constexpr std::int64_t wide = Substitution::kWide;
  const std::int64_t count = std::min(wide, problem.pairs - first);
  bool found = false;
  for (std::int64_t c = 0; c < count; ++c) {
    const double* from = problem.integrals + problem.row[first + c] * problem.functions;
    for (std::int64_t k = 0; k < problem.functions; ++k) {
      tile[k * wide + c] = from[k];
      found |= from[k] != 0;  // so is a NaN
    }
  }
  return found;
}

template <class T>
void fitting_solution(const SolutionProblem& problem, T* out, std::int32_t* present) {
  std::fill_n(present, problem.pairs, 0);
  constexpr std::int64_t wide = Substitution::kWide;
  const Substitution substitution(problem.factor, problem.functions);
  const std::int64_t each = substitution.functions() * wide;
  constexpr std::int64_t most = kPanelPairs / wide;
  std::vector<Vec<double>> storage(most * each / kWidth<double>);
  double* panel = reinterpret_cast<double*>(storage.data());
  std::vector<std::int64_t> first;  // AO pair of the tiles of this panel
  const auto finish = [&] {
    substitution(panel, first.size());
    for (std::size_t t = 0; t < first.size(); ++t) {
      const std::int64_t count = std::min(wide, problem.pairs - first[t]);
      for (std::int64_t f = 0; f < problem.functions; ++f) {
        const double* from = panel + t * each + f * wide;
        T* to = out + f * problem.pairs + first[t];
        for (std::int64_t c = 0; c < count; ++c) {
          to[c] = T(std::abs(from[c]) < kVanishing<T> ? 0.0 : from[c]);
          present[first[t] + c] |= to[c] != 0;  // so is a NaN
        }
      }
    }
    first.clear();
  };
  for (std::int64_t pair = 0; pair < problem.pairs; pair += wide) {
    double* tile = panel + first.size() * each;
    std::fill_n(tile, each, 0.0);
    if (gather_tile(problem, pair, tile)) {
      first.push_back(pair);
    } else {
      const std::int64_t count = std::min(wide, problem.pairs - pair);
      for (std::int64_t f = 0; f < problem.functions; ++f)
        std::fill_n(out + f * problem.pairs + pair, count, T(0));
    }
    if (std::int64_t(first.size()) == most) finish();
  }
  finish();
}

}  // namespace pyscf_ipu::ISA
