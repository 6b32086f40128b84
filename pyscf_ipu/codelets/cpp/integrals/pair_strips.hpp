// Hermite data of all shell pairs in the order of the tile plan: the codelet "pair_strips"; see
// integrals/strips.py.
#pragma once

#include <algorithm>
#include <vector>

#include "integrals/shell_pairs.hpp"

namespace pyscf_ipu::ISA {

// The shell pairs of two groups, and where their primitive pairs lie in the strips of their class.
template <class T>
struct Member {
  const PairMember<T>& of;
  const PairClass<T>& strips;
  const std::int64_t k = of.a.primitives * of.b.primitives;
  const std::int64_t chunks = (k + strips.depth - 1) / strips.depth;
  const int products = of.a.functions * of.b.functions, hermites = n_hermite(strips.order);
  std::vector<T> p, high, low, e, kinetic;

  Member(const PairMember<T>& member, const PairClass<T>& strips_of) : of(member), strips(strips_of) {
    p.resize(of.pairs * k), high.resize(3 * p.size()), low.resize(3 * p.size());
    e.resize(p.size() * products * hermites), kinetic.resize(of.pairs * products);
  }

  PairProblem<T> problem() {
    return {of.a,       of.b,        of.pairs, strips.order,  p.data(),
            high.data(), low.data(), e.data(), kinetic.data()};
  }

  // f(primitive pair, its place in the strips)
  template <class F>
  void each(F f) const {
    for (std::int64_t pair = 0; pair < of.pairs; ++pair)
      for (std::int64_t j = 0; j < k; ++j)
        f(pair * k + j, of.where[pair * chunks + j / strips.depth] * strips.depth + j % strips.depth);
  }

  // f(first product of a pair, its place among those of the class)
  template <class F>
  void each_pair(F f) const {
    for (std::int64_t pair = 0; pair < of.pairs; ++pair)
      f(pair * products, std::int64_t(of.place[pair]) * strips.products);
  }

  std::int64_t size_of_e() const { return products * hermites; }
  std::int64_t size_in_strips() const { return std::int64_t(strips.products) * hermites; }
};

template <class T>
void pair_strips(const PairStrips<T>& all) {
  for (const PairClass<T>& c : all.classes) {
    const std::int64_t primitives = c.chunks * c.depth;
    std::fill_n(c.p, primitives, T(1));  // where there is no primitive pair
    std::fill_n(c.high, 3 * primitives, T(0)), std::fill_n(c.low, 3 * primitives, T(0));
    std::fill_n(c.e, primitives * c.products * n_hermite(c.order), T(0));
    std::fill_n(c.kinetic, c.rows, T(0));
  }
  for (const PairMember<T>& of : all.members) {
    const PairClass<T>& to = all.classes[of.of_class];
    Member<T> m(of, to);
    shell_pairs<T>(m.problem());
    m.each([&](std::int64_t from, std::int64_t at) {
      to.p[at] = m.p[from];
      std::copy_n(&m.high[3 * from], 3, to.high + 3 * at);
      std::copy_n(&m.low[3 * from], 3, to.low + 3 * at);
      std::copy_n(&m.e[from * m.size_of_e()], m.size_of_e(), to.e + at * m.size_in_strips());
    });
    m.each_pair([&](std::int64_t from, std::int64_t at) {
      std::copy_n(&m.kinetic[from], m.products, to.kinetic + at);
    });
  }
}

}  // namespace pyscf_ipu::ISA
