// Derivatives of sum W (P|ab) by the Hermite data of the kets and by the centres of the auxiliary
// shells: the codelet "fitting_gradient".
//
// The walk is that of "fitting_integrals".  The weights of one shell and its kets are contracted with
// the kets' E; then each primitive triple adds to two sums: by the kets' E (the shell-contracted R,
// as there), and by the distance of the centres (R of one order higher).
#pragma once

#include <vector>

#include "fitting/fitting_integrals.hpp"

namespace pyscf_ipu::ISA {

template <class T>
struct FittingGradientVertex {
  const BoysFit<T>& fit;
  const Interaction<T>& of;
  const Side<T>&bra, &ket;
  const T* bra_base;  // of the E of all shells
  T* bra_centre;
  const int order;
  std::vector<int> row;  // [4, bra, ket]: of the sum of two Hermites; one degree higher along x, y, z
  std::vector<std::vector<int>> of_bra, of_ket;
  // Weights [g, f]; times the kets' E [k, f]; shell-contracted R [4, k, f].
  std::vector<Vec<T>> r, weights, charge, half;

  FittingGradientVertex(const BoysFit<T>* fits, const Interaction<T>& of, const Side<T>& bra,
                        const Side<T>& ket, const T* bra_base, T* bra_centre)
      : fit(fits[bra.order + ket.order + 1]), of(of), bra(bra), ket(ket), bra_base(bra_base),
        bra_centre(bra_centre), order(bra.order + ket.order + 1),
        row(4 * bra.hermites * ket.hermites), of_bra(FittingVertex<T>::hermites_of(bra)),
        of_ket(FittingVertex<T>::hermites_of(ket)), r(n_hermite(order)),
        weights(ket.products * bra.products), charge(ket.hermites * bra.products),
        half(4 * ket.hermites * bra.products) {
    const int each = bra.hermites * ket.hermites;
    for_each_row(bra.order, [&](int t, int u, int v) {
      for_each_row(ket.order, [&](int a, int b, int c) {
        int* at = row.data() + hermite_row(t, u, v) * ket.hermites + hermite_row(a, b, c);
        at[0] = hermite_row(t + a, u + b, v + c);
        at[each] = hermite_row(t + a + 1, u + b, v + c);
        at[2 * each] = hermite_row(t + a, u + b + 1, v + c);
        at[3 * each] = hermite_row(t + a, u + b, v + c + 1);
      });
    });
  }

  // One shell and a group of kets; sums[primitive, g, k] by E and by_centre[primitive, 3] are added to.
  void operator()(const ShellPair<T>& shell, const PairStrip<T>& kets, const KetGroup<T>& group,
                  const T* given, std::int64_t functions, std::vector<Vec<T>>& sums,
                  std::vector<Vec<T>>& by_centre) {
    gather(shell, kets, group, given, functions);
    const int n = bra.products, each = ket.products * ket.hermites;
    Vec<T> on_shell[3]{};
    for (std::size_t i = 0; i < group.primitives.size(); ++i) {
      const auto& q = group.primitives[i];
      if (shell.primitives.front().size * q.size < kNegligible<T>) continue;
      contract_weights(q);
      std::fill(half.begin(), half.end(), Vec<T>{});
      for (const auto& p : shell.primitives) {
        if (p.size * q.size < kNegligible<T>) break;
        contract_bra(p, q);
      }
      const int block = ket.hermites * n;
      for (int d = 0; d < 3; ++d) {
        Vec<T> force{};
        const Vec<T>* moved = half.data() + (d + 1) * block;
        for (int kf = 0; kf < block; ++kf) force += charge[kf] * moved[kf];
        by_centre[3 * i + d] -= force;
        on_shell[d] += force;
      }
      Vec<T>* to = sums.data() + i * each;
      for (int g = 0; g < ket.products; ++g)
        for (int k = 0; k < ket.hermites; ++k) {
          Vec<T> sum{};
          for (int f = 0; f < n; ++f) sum += weights[g * n + f] * half[k * n + f];
          to[g * ket.hermites + k] += sum;
        }
    }
    // All primitives of a shell have its centre: the first one takes the sum.
    const std::int64_t at = (shell.primitives.front().e - bra_base) / (n * bra.hermites);
    for (int d = 0; d < 3; ++d) bra_centre[3 * at + d] += sum<T>(on_shell[d]);
  }

 private:
  void gather(const ShellPair<T>& shell, const PairStrip<T>& kets, const KetGroup<T>& group,
              const T* given, std::int64_t functions) {
    T* to = reinterpret_cast<T*>(weights.data());
    std::fill(weights.begin(), weights.end(), Vec<T>{});
    const int n = bra.products;
    for (int lane = 0; lane < group.lanes; ++lane) {
      const T* from = given + kets.pairs[group.first + lane].row * functions + shell.row;
      for (int g = 0; g < ket.products; ++g)
        for (int f = 0; f < n; ++f) to[(g * n + f) * kWidth<T> + lane] = from[g * functions + f];
    }
  }

  void contract_weights(const KetVector<T>& q) {
    const int n = bra.products;
    std::fill(charge.begin(), charge.end(), Vec<T>{});
    for (int g = 0; g < ket.products; ++g)
      for (const int k : of_ket[g]) {
        const Vec<T> e = load<T>(q.e + (g * ket.hermites + k) * kWidth<T>);
        for (int f = 0; f < n; ++f) charge[k * n + f] += weights[g * n + f] * e;
      }
  }

  void contract_bra(const Primitive<T>& p, const KetVector<T>& q) {
    const auto [inverse_root, alpha, d] = Meeting<T>(p, q);
    hermite_of_order<T>(order, fit, of, alpha, inverse_root, d, r.data());
    const int n = bra.products, each = bra.hermites * ket.hermites;
    for (int m = 0; m < 4; ++m)
      for (int f = 0; f < n; ++f) {
        const T* e = p.e + f * bra.hermites;
        Vec<T>* to = half.data() + m * ket.hermites * n + f;
        for (const int h : of_bra[f]) {
          const int* at = row.data() + m * each + h * ket.hermites;
          for (int k = 0; k < ket.hermites; ++k) to[k * n] += e[h] * r[at[k]];
        }
      }
  }
};

// Adds the sums of a group of kets to the result of its class; E carries the sign of a ket.
template <class T>
void add_to_kets(const Side<T>& ket, const PairStrip<T>& kets, const KetGroup<T>& group,
                 const std::vector<Vec<T>>& sums, const std::vector<Vec<T>>& by_centre,
                 const T* base, T* centre, T* e) {
  const int each = ket.products * ket.hermites;
  std::vector<T> sign;
  for_each_row(ket.order, [&](int t, int u, int v) { sign.push_back((t + u + v) % 2 ? T(-1) : T(1)); });
  for (int lane = 0; lane < group.lanes; ++lane) {
    const auto& primitives = kets.pairs[group.first + lane].primitives;
    for (std::size_t i = 0; i < primitives.size(); ++i) {
      const std::int64_t at = (primitives[i].e - base) / each;
      for (int d = 0; d < 3; ++d) centre[3 * at + d] += by_centre[3 * i + d][lane];
      for (int gk = 0; gk < each; ++gk)
        e[at * each + gk] += sign[gk % ket.hermites] * sums[i * each + gk][lane];
    }
  }
}

template <class T>
void fitting_gradient(const FittingGradientProblem<T>& problem) {
  const auto& eri = problem.integrals;
  const FittingSides<T> found(eri, 1);
  const auto &bras = found.bras, &kets = found.kets;
  for (std::size_t b = 0; b < bras.size(); ++b)
    std::fill_n(problem.bra_centres[b], 3 * eri.bras[b].chunks * eri.bras[b].depth, T(0));
  for (std::size_t c = 0; c < kets.size(); ++c) {
    const Side<T>& ket = kets[c];
    const auto& given = eri.kets[c];
    const std::int64_t primitives = std::int64_t(given.strips) * given.chunks * given.depth;
    const int each = ket.products * ket.hermites;
    std::fill_n(problem.ket_centres[c], 3 * primitives, T(0));
    std::fill_n(problem.ket_e[c], each * primitives, T(0));
    std::vector<FittingGradientVertex<T>> vertices;
    for (std::size_t b = 0; b < bras.size(); ++b)
      vertices.emplace_back(found.fits.data(), eri.of, bras[b], ket, eri.bras[b].e,
                            problem.bra_centres[b]);
    std::vector<Vec<T>> sums, by_centre;
    for (const auto& strip : ket.strips)
      for (const auto& group : strip.groups) {
        sums.assign(group.primitives.size() * each, Vec<T>{});
        by_centre.assign(group.primitives.size() * 3, Vec<T>{});
        for (auto& vertex : vertices)
          for (const auto& shell : vertex.bra.strips.front().pairs)
            vertex(shell, strip, group, problem.weights, eri.functions, sums, by_centre);
        add_to_kets(ket, strip, group, sums, by_centre, given.e, problem.ket_centres[c],
                    problem.ket_e[c]);
      }
  }
}

}  // namespace pyscf_ipu::ISA
