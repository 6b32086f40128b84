// Derivatives of E and of the kinetic energy of shell pairs by A - B, contracted with weights: the
// codelet "pair_gradient"; see gradient/pairs.py.
//
// A derivative of a Gaussian by its centre is one of a power more and one of a power less.  At a
// fixed centre P of the product, dE_t^{ij}/dA = 2a E_t^{i+1,j} - i E_t^{i-1,j} - (a/p) E_{t-1}^{ij}
// along each axis (Helgaker, Jorgensen, Olsen, sec. 9.5.4).
#pragma once

#include <algorithm>
#include <vector>

#include "integrals/pair_strips.hpp"

namespace pyscf_ipu::ISA {

template <class T, int kMostL>
struct PairsGradientVertex : PairsVertex<T, kMostL, 1> {
  using Base = PairsVertex<T, kMostL, 1>;
  using Base::ea, Base::eb, Base::in, Base::overlap, Base::p, Base::powers, Base::rows,
      Base::scratch, Base::stride, Base::table, Base::values;
  T* out;  // [pairs, 3]; the weights are where the base has its results

  void operator()() {
    this->begin();
    const std::int64_t depth = in.a.primitives * in.b.primitives;
    std::fill_n(out, 3 * in.pairs, T(0));
    for (std::int64_t first = 0; first < in.pairs * depth; first += kWidth<T>) {
      const int count = int(std::min<std::int64_t>(kWidth<T>, in.pairs * depth - first));
      typename Base::Lanes a, b;
      this->prepare(first, count, a, b);
      weights(first, count, depth);
      Vec<T> along[3]{};
      contract(a, b, along);
      for (int lane = 0; lane < count; ++lane)
        for (int d = 0; d < 3; ++d) out[(first + lane) / depth * 3 + d] += along[d][lane];
    }
  }

 private:
  // values[ca, cb, h]: the weights of cartesian components, those of the kinetic energy last.
  void weights(std::int64_t first, int count, std::int64_t depth) {
    const int functions = in.a.functions * in.b.functions;
    std::fill(values.begin(), values.end(), Vec<T>{});
    for (int lane = 0; lane < count; ++lane) {
      const std::int64_t at = first + lane;
      const T* e = in.e + at * functions * rows;
      const T* kinetic = in.kinetic + at / depth * functions;
      for (int f = 0; f < functions; ++f) {
        for (int h = 0; h < rows; ++h) values[f * stride + h][lane] = e[f * rows + h];
        values[f * stride + rows][lane] = kinetic[f];
      }
    }
    transposed(in.b, in.a.functions, stride);
    transposed(in.a, 1, in.b.components * stride);
  }

  // values[outer, functions, inner] -> [outer, components, inner].
  void transposed(const PairShells<T>& s, int outer, int inner) {
    for (int o = 0; o < outer; ++o)
      for (int c = 0; c < s.components; ++c)
        for (int i = 0; i < inner; ++i) {
          Vec<T> total{};
          for (int f = 0; f < s.functions; ++f)
            total += T(s.transform[f * s.components + c]) * values[(o * s.functions + f) * inner + i];
          scratch[(o * s.components + c) * inner + i] = total;
        }
    values.swap(scratch);
  }

  void contract(const typename Base::Lanes& a, const typename Base::Lanes& b, Vec<T> (&along)[3]) {
    const Vec<T> share = ea / p, gauss = this->gaussian(p);
    for (int ca = 0; ca < in.a.components; ++ca)
      for (int cb = 0; cb < in.b.components; ++cb) {
        const std::int32_t *i = in.a.powers + 4 * ca, *j = in.b.powers + 4 * cb;
        const Vec<T>* v = &values[(ca * in.b.components + cb) * stride];
        Vec<T> e[3][2 * kMostL + 2], by_a[3][2 * kMostL + 2];
        for (int d = 0; d < 3; ++d)
          for (int t = 0; t <= i[d] + j[d] + 1; ++t) {
            e[d][t] = table[d][i[d]][j[d]][t];
            by_a[d][t] = T(2) * ea * table[d][i[d] + 1][j[d]][t];
            if (i[d]) by_a[d][t] -= T(i[d]) * table[d][i[d] - 1][j[d]][t];
            if (t) by_a[d][t] -= share * e[d][t - 1];
          }
        Vec<T> sum[3]{};
        for (int h = 0; h < rows; ++h) {
          const int* t = powers[h];
          if (t[0] > i[0] + j[0] || t[1] > i[1] + j[1] || t[2] > i[2] + j[2]) continue;
          const Vec<T> x = e[0][t[0]], y = e[1][t[1]], z = e[2][t[2]];
          sum[0] += v[h] * (by_a[0][t[0]] * y * z);
          sum[1] += v[h] * (x * by_a[1][t[1]] * z);
          sum[2] += v[h] * (x * y * by_a[2][t[2]]);
        }
        kinetic_part(i, j, v[rows] * gauss, sum);
        const Vec<T> weight = this->gather(in.a.coefficients, a.primitive, in.a.columns, i[3]) *
                              this->gather(in.b.coefficients, b.primitive, in.b.columns, j[3]) *
                              overlap;
        for (int d = 0; d < 3; ++d) along[d] += weight * sum[d];
      }
  }

  // t_0 s_1 s_2 + s_0 t_1 s_2 + s_0 s_1 t_2, each factor differentiated in turn.
  void kinetic_part(const std::int32_t* i, const std::int32_t* j, Vec<T> weight,
                    Vec<T> (&sum)[3]) const {
    Vec<T> s[3], t[3], ds[3], dt[3];
    for (int d = 0; d < 3; ++d) {
      const auto& e = table[d];
      s[d] = e[i[d]][j[d]][0];
      t[d] = this->kinetic(e, i[d], j[d], ea, eb);
      ds[d] = T(2) * ea * e[i[d] + 1][j[d]][0];
      dt[d] = T(2) * ea * this->kinetic(e, i[d] + 1, j[d], ea, eb);
      if (i[d]) {
        ds[d] -= T(i[d]) * e[i[d] - 1][j[d]][0];
        dt[d] -= T(i[d]) * this->kinetic(e, i[d] - 1, j[d], ea, eb);
      }
    }
    for (int d = 0; d < 3; ++d) {
      const int u = (d + 1) % 3, w = (d + 2) % 3;
      sum[d] += weight * (dt[d] * s[u] * s[w] + ds[d] * (t[u] * s[w] + s[u] * t[w]));
    }
  }
};

// out[pairs, 3]
template <class T>
void by_displacement(const PairProblem<T>& problem, T* out) {
  if (std::max(problem.a.highest, problem.b.highest) <= 2)
    PairsGradientVertex<T, 2>{{problem}, out}();
  else
    PairsGradientVertex<T, 3>{{problem}, out}();
}

// A centre moves with both nuclei, by their shares in the exponent; E with their distance.
template <class T>
void add_to_nuclei(const Member<T>& m, const std::vector<T>& by_displacement, double* out) {
  const PairShells<T>&a = m.of.a, &b = m.of.b;
  const auto exponent = [](const PairShells<T>& s, std::int64_t pair, std::int64_t primitive) {
    const std::int64_t at = s.index[pair] * s.primitives + primitive;
    return double(s.exponents[at]) + s.exponents_low[at];
  };
  for (std::int64_t pair = 0; pair < m.of.pairs; ++pair) {
    double *one = out + 3 * m.of.atom_a[pair], *two = out + 3 * m.of.atom_b[pair];
    for (int d = 0; d < 3 && one != two; ++d)
      one[d] += by_displacement[3 * pair + d], two[d] -= by_displacement[3 * pair + d];
    for (std::int64_t j = 0; j < m.k; ++j) {
      const double ea = exponent(a, pair, j / b.primitives), eb = exponent(b, pair, j % b.primitives);
      for (int d = 0; d < 3; ++d) {
        const double centre = m.high[3 * (pair * m.k + j) + d], on_a = ea / (ea + eb) * centre;
        one[d] += on_a, two[d] += centre - on_a;
      }
    }
  }
}

template <class T>
void pair_gradient(const PairStrips<T>& all, std::int64_t atoms, T* out) {
  std::vector<double> total(3 * atoms);
  for (const PairMember<T>& of : all.members) {
    const PairClass<T>& from = all.classes[of.of_class];
    Member<T> m(of, from);
    m.each([&](std::int64_t to, std::int64_t at) {
      std::copy_n(from.high + 3 * at, 3, &m.high[3 * to]);
      std::copy_n(from.e + at * m.size_in_strips(), m.size_of_e(), &m.e[to * m.size_of_e()]);
    });
    m.each_pair([&](std::int64_t to, std::int64_t at) {
      std::copy_n(from.kinetic + at, m.products, &m.kinetic[to]);
    });
    std::vector<T> by_pair(3 * of.pairs);
    by_displacement<T>(m.problem(), by_pair.data());
    add_to_nuclei(m, by_pair, total.data());
  }
  std::copy(total.begin(), total.end(), out);
}

}  // namespace pyscf_ipu::ISA
