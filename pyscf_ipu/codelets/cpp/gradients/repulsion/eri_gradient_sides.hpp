// What "eri_gradient" knows of Hermites and of both sides before it meets a quartet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "hermite.hpp"
#include "integrals/eri_sides.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Row of (t, u, v) one degree higher along each axis.
template <int L>
struct RaisedIndex {
  std::array<std::array<int, n_hermite(L)>, 3> row{};

  constexpr RaisedIndex() {
    for_each_row(L, [this](int t, int u, int v) {
      const int h = hermite_row(t, u, v);
      row[0][h] = hermite_row(t + 1, u, v);
      row[1][h] = hermite_row(t, u + 1, v);
      row[2][h] = hermite_row(t, u, v + 1);
    });
  }
};

template <int L>
inline constexpr RaisedIndex<L> kRaised{};

// Row of (t, u, v) one degree lower along each axis, and its power there.
template <int L>
struct LoweredIndex {
  std::array<std::array<int, n_hermite(L)>, 3> row{}, count{};

  constexpr LoweredIndex() {
    for_each_row(L, [this](int t, int u, int v) {
      const int h = hermite_row(t, u, v), power[3] = {t, u, v};
      for (int i = 0; i < 3; ++i) {
        count[i][h] = power[i];
        if (power[i]) row[i][h] = hermite_row(t - (i == 0), u - (i == 1), v - (i == 2));
      }
    });
  }
};

template <int L>
inline constexpr LoweredIndex<L> kLowered{};

// The AOs of the products of a group of kets, lane by lane: each lane vector is listed once, and every
// product (k, l) has two of them.
template <class T>
struct GroupProducts {
  std::vector<std::int32_t> aos;     // [slots, lanes]
  std::vector<int> first, second;    // slots of k and of l [products]
  std::vector<Vec<T>> times;         // how often a product stands in a symmetric matrix [products]

  GroupProducts(const std::int32_t* products, const PairStrip<T>& strip, const KetGroup<T>& group,
                int count)
      : times(count) {
    for (int g = 0; g < count; ++g) {
      std::int32_t aos[2][kWidth<T>];
      for (int lane = 0; lane < kWidth<T>; ++lane) {
        const int pair = group.first + std::min(lane, group.lanes - 1);
        const std::int32_t* row = products + 3 * (strip.pairs[pair].row + g);
        aos[0][lane] = row[0], aos[1][lane] = row[1];
        times[g][lane] = lane < group.lanes ? T(row[2]) : T(0);
      }
      first.push_back(slot(aos[0])), second.push_back(slot(aos[1]));
    }
  }

  int slots() const { return int(aos.size()) / kWidth<T>; }

 private:
  int slot(const std::int32_t* wanted) {
    const int n = slots();
    for (int s = 0; s < n; ++s)
      if (std::equal(wanted, wanted + kWidth<T>, aos.data() + s * kWidth<T>)) return s;
    aos.insert(aos.end(), wanted, wanted + kWidth<T>);
    return n;
  }
};

// Of all groups of a class: [strips][groups].
template <class T>
std::vector<std::vector<GroupProducts<T>>> products_of(const Side<T>& side,
                                                       const std::int32_t* products) {
  std::vector<std::vector<GroupProducts<T>>> found(side.strips.size());
  for (std::size_t s = 0; s < found.size(); ++s)
    for (const auto& group : side.strips[s].groups)
      found[s].emplace_back(products, side.strips[s], group, side.products);
  return found;
}

// Row k of a ket Hermite so that h and k add up to m, or -1.
template <int LB, int LK>
struct DifferenceIndex {
  std::array<std::array<int, n_hermite(LB)>, n_hermite(LB + LK)> row{};

  constexpr DifferenceIndex() {
    for (auto& rows : row)
      for (int& one : rows) one = -1;
    for (int h = 0; h < n_hermite(LB); ++h)
      for (int k = 0; k < n_hermite(LK); ++k) row[kProduct<LB, LK>.row[h][k]][h] = k;
  }
};

template <int LB, int LK>
inline constexpr DifferenceIndex<LB, LK> kDifference{};

// Which Hermites the E of product f has, a bit for each, in a class of s functions (one product) or
// of s with s, x, y and z (four of them): the classes with the most quartets, written out.
constexpr unsigned long long usual_pattern(int f) { return 1ULL | 1ULL << f; }

template <class T>
bool is_usual(const Side<T>& side, int products) {
  if (side.products != products) return false;
  for (int f = 0; f < products; ++f)
    if (side.occupied_by[f] != usual_pattern(f)) return false;
  return true;
}

// A class as kets: its products, and its sums, laid out as Side::lanes and with three vectors per
// KetVector.
template <class T>
struct KetSums {
  std::vector<std::vector<GroupProducts<T>>> products;  // [strips][groups]
  std::vector<Vec<T>> e, centre;
  const T* lanes;
  int each;

  KetSums(const Side<T>& side, const std::int32_t* aos)
      : products(products_of(side, aos)), e(side.lanes.size()), centre(3 * side.lanes.size() / (side.products * side.hermites)),
        lanes(reinterpret_cast<const T*>(side.lanes.data())), each(side.products * side.hermites) {}

  std::size_t index(const KetVector<T>& q) const { return (q.e - lanes) / (each * kWidth<T>); }
};

// Which Hermites the E of every product of kets has: the transpose of Side::occupied.
template <class T>
std::vector<std::vector<int>> hermites_of(const Side<T>& side) {
  std::vector<std::vector<int>> found(side.products);
  for (int k = 0; k < side.hermites; ++k)
    for (const int g : side.occupied[k]) found[g].push_back(k);
  return found;
}

}  // namespace pyscf_ipu::ISA
