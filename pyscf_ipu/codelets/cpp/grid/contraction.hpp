// The radial functions of a shell of AOs, from exponents and coefficients in two words.
//
// Rounded to one word they would be wrong by up to 6e-8 for all atoms of an element alike: a bias.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// A row of orbitals.shell_table: contractions[l] radial functions of angular momentum l.
struct ShellRow {
  std::int32_t atom, first_ao, n_prim, exponents, coefficients, contractions[4];

  int columns() const { return contractions[0] + contractions[1] + contractions[2] + contractions[3]; }
};

// A number in two words.
template <class T>
struct Words {
  T high, low;
  Words() = default;
  explicit Words(double x) : high(T(x)), low(T(x - double(high))) {}
};

// The primitives of a shell; the slope, twice the derivative by r^2, has factors of its own.
template <class T>
struct Contraction {
  std::vector<Words<T>> exponent, value, slope;  // value and slope: [n_prim, columns]
  T smallest, size;                              // exponent; 1 + sum |coefficient|

  void read(const AoProblem<T>& in, const ShellRow& shell) {
    const int columns = shell.columns();
    exponent.resize(shell.n_prim), value.resize(shell.n_prim * columns);
    slope.resize(value.size());
    smallest = in.exponents[shell.exponents], size = 1;
    for (int k = 0, c = 0; k < shell.n_prim; ++k) {
      const int at = shell.exponents + k;
      const double a = double(in.exponents[at]) + double(in.exponents_low[at]);
      exponent[k] = Words<T>(a);
      smallest = std::fmin(smallest, exponent[k].high);
      for (const int end = c + columns; c < end; ++c) {
        const int from = shell.coefficients + c;
        const double x = double(in.coefficients[from]) + double(in.coefficients_low[from]);
        value[c] = Words<T>(x), slope[c] = Words<T>(-2 * a * x);
        size += std::fabs(value[c].high);
      }
    }
  }

  // sum_k factor_k gauss_k of a column.  Second words first: added at the end they would be lost.
  static Vec<T> sum(const std::vector<Words<T>>& factor, int column, int columns,
                    const std::vector<Vec<T>>& gauss, int n_prim) {
    Vec<T> total = {};
    for (int k = 0; k < n_prim; ++k) total += factor[k * columns + column].low * gauss[k];
    for (int k = 0; k < n_prim; ++k) total += factor[k * columns + column].high * gauss[k];
    return total;
  }
};

}  // namespace pyscf_ipu::ISA
