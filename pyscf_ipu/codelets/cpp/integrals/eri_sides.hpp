// The primitive pairs of a class, arranged for the two roles they play in (ab|cd).
//
// Primitive pairs whose charge is negligible are left out, the rest sorted by size.  As kets,
// the shell pairs of a strip are put on vector lanes, those of like depth together, so that few
// lanes idle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hermite.hpp"
#include "kernels.hpp"

namespace pyscf_ipu::ISA {

// A primitive quartet contributes at most about size(bra) * size(ket) Hartree; below this it is
// left out.  Far below an ulp of the integrals that matter.
template <class T>
constexpr T kNegligible = std::is_same_v<T, float> ? T(1e-10) : T(1e-15);

// One primitive pair: exponent, centre in two words, bound on its interactions, and its E [f, h].
template <class T>
struct Primitive {
  T p, high[3], low[3], size;
  const T* e;
};

// One shell pair of a strip: its first row in the matrix, and its primitives, largest first.
template <class T>
struct ShellPair {
  std::int64_t row;
  std::vector<Primitive<T>> primitives;
};

// One primitive of each of kWidth shell pairs, with the E of every lane: [f, h, lanes].
template <class T>
struct KetVector {
  Vec<T> q, high[3], low[3];
  T size;
  const T* e;
};

template <class T>
struct KetGroup {
  int lanes, first;  // shell pairs first .. first + lanes - 1 of the strip
  std::vector<KetVector<T>> primitives;
};

template <class T>
struct PairStrip {
  std::vector<ShellPair<T>> pairs;  // deepest first; those without charge are left out
  std::vector<KetGroup<T>> groups;
};

// A class: order of its Hermites, number of AO products, which E can be other than zero
// (occupied[h] lists products f, occupied_by[f] has a bit for each h < 64), and its strips.
template <class T>
struct Side {
  int order, products, hermites;
  std::vector<std::vector<int>> occupied;
  std::vector<unsigned long long> occupied_by;
  std::vector<PairStrip<T>> strips;
  std::vector<Vec<T>> lanes;  // storage of all KetVector::e
};

// The bound of one primitive pair.  |R_h| is largest where the charges coincide, for h = (n, 0, 0):
// (n-1)!!/(n+1) (2 alpha)^(n/2) <= growth^n (2 alpha)^(n/2) for all n up to twice the highest order
// of a class, alpha is below p and q, and 1/sqrt(p+q) <= (4 p q)^(-1/4): a factor for each side.
template <class T>
constexpr T growth_of(int highest) {
  return highest <= 4 ? T(1.36) : highest == 5 ? T(1.57) : T(1.75);
}

template <class T>
T size_of(T p, const T* e, int products, int order, T growth) {
  T largest = 0;
  const T root = growth * std::sqrt(T(2) * p);
  for (int f = 0; f < products; ++f) {
    T total = 0, power = 1;
    for (int d = 0, h = 0; d <= order; ++d, power *= root)
      for (const int end = n_hermite(d); h < end; ++h)
        total += std::abs(e[f * n_hermite(order) + h]) * power;
    // A NaN has to reach the result: it is never negligible.
    largest = std::isnan(total) ? std::numeric_limits<T>::infinity() : std::max(largest, total);
    if (std::isinf(largest)) break;
  }
  return largest / std::sqrt(std::sqrt(T(2) * p));
}

// The sizes of all primitive pairs of a class: [S, chunks, depth].
template <class T>
std::vector<T> sizes_of(const EriClass<T>& c, int highest) {
  const std::int64_t each = c.products * n_hermite(c.order);
  std::vector<T> sizes(std::int64_t(c.strips) * c.chunks * c.depth);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = size_of(c.p[i], c.e + i * each, c.products, c.order, growth_of<T>(highest));
  return sizes;
}

template <class T>
PairStrip<T> strip_of(const EriClass<T>& c, const std::vector<T>& sizes, int s, T largest) {
  PairStrip<T> strip;
  strip.pairs.resize(c.pairs);
  for (int j = 0; j < c.pairs; ++j)
    strip.pairs[j].row = c.first_row + (std::int64_t(s) * c.pairs + j) * c.products;
  const int each = c.products * n_hermite(c.order);
  for (int b = 0; b < c.chunks; ++b)
    for (int i = 0; i < c.depth; ++i) {
      const std::int64_t at = (std::int64_t(s) * c.chunks + b) * c.depth + i;
      Primitive<T> one{c.p[at], {}, {}, sizes[at], c.e + at * each};
      for (int d = 0; d < 3; ++d) one.high[d] = c.high[3 * at + d], one.low[d] = c.low[3 * at + d];
      if (!(one.size * largest < kNegligible<T>))
        strip.pairs[c.segment[s * c.chunks + b]].primitives.push_back(one);
    }
  auto& pairs = strip.pairs;
  for (auto& pair : pairs)
    std::sort(pair.primitives.begin(), pair.primitives.end(),
              [](const auto& a, const auto& b) { return a.size > b.size; });
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [](const auto& pair) { return pair.primitives.empty(); }),
              pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
    return a.primitives.size() > b.primitives.size();
  });
  return strip;
}

// Fills one lane of a ket vector; `e` is [f, h, lanes] and gets the ket's sign (-1)^|h|.
template <class T>
void fill_lane(KetVector<T>& v, T* e, int lane, const Primitive<T>& from, bool empty, int products,
               int order) {
  v.q[lane] = from.p;
  for (int d = 0; d < 3; ++d) v.high[d][lane] = from.high[d], v.low[d][lane] = from.low[d];
  if (empty) return;
  v.size = std::max(v.size, from.size);
  const int hermites = n_hermite(order);
  for (int f = 0; f < products; ++f)
    for (int d = 0, h = 0; d <= order; ++d)
      for (const int end = n_hermite(d); h < end; ++h) {
        const T x = from.e[f * hermites + h];
        e[(f * hermites + h) * kWidth<T> + lane] = d % 2 ? -x : x;
      }
}

template <class T>
void group_lanes(Side<T>& side, PairStrip<T>& strip, std::size_t& used) {
  const int n = static_cast<int>(strip.pairs.size()), each = side.products * side.hermites;
  for (int first = 0; first < n; first += kWidth<T>) {
    KetGroup<T> group{std::min(kWidth<T>, n - first), first, {}};
    const std::size_t depth = strip.pairs[first].primitives.size();
    for (std::size_t k = 0; k < depth; ++k, used += each) {
      KetVector<T> v{};
      T* e = reinterpret_cast<T*>(side.lanes.data() + used);
      v.e = e;
      for (int lane = 0; lane < kWidth<T>; ++lane) {
        const auto& found = strip.pairs[std::min(first + lane, n - 1)].primitives;
        const bool empty = lane >= group.lanes || k >= found.size();
        fill_lane(v, e, lane, found[std::min(k, found.size() - 1)], empty, side.products,
                  side.order);
      }
      group.primitives.push_back(v);
    }
    strip.groups.push_back(std::move(group));
  }
}

// The highest order of the classes.
template <class T>
int highest_of(const std::vector<EriClass<T>>& classes) {
  int highest = 0;
  for (const auto& c : classes) highest = std::max(highest, c.order);
  return highest;
}

template <class T>
Side<T> side_of(const EriClass<T>& c, const std::vector<T>& sizes, T largest) {
  Side<T> side{c.order, c.products, n_hermite(c.order), {}, {}, {}, {}};
  std::size_t vectors = 0;
  for (int s = 0; s < c.strips; ++s) {
    side.strips.push_back(strip_of(c, sizes, s, largest));
    const auto& pairs = side.strips.back().pairs;
    for (std::size_t first = 0; first < pairs.size(); first += kWidth<T>)
      vectors += pairs[first].primitives.size();
  }
  side.lanes.assign(vectors * side.products * side.hermites, Vec<T>{});
  std::size_t used = 0;
  for (auto& strip : side.strips) group_lanes(side, strip, used);
  side.occupied.resize(side.hermites);
  side.occupied_by.resize(side.products);
  for (int h = 0; h < side.hermites; ++h)
    for (int f = 0; f < side.products; ++f) {
      bool found = false;
      for (const auto& strip : side.strips)
        for (const auto& pair : strip.pairs)
          for (const auto& one : pair.primitives)
            found = found || one.e[f * side.hermites + h] != T(0);
      if (!found) continue;
      side.occupied[h].push_back(f);
      if (h < 64) side.occupied_by[f] |= 1ULL << h;
    }
  return side;
}

// The sizes of the primitive pairs of some classes, and the largest of all.
template <class T>
struct Sizes {
  std::vector<std::vector<T>> of;
  T largest = 0;

  Sizes(const std::vector<EriClass<T>>& classes, int highest) {
    for (const auto& c : classes) {
      of.push_back(sizes_of(c, highest));
      for (const T size : of.back()) largest = std::max(largest, size);
    }
  }
};

// All classes arranged, without what is negligible beside the `largest` of those they meet.
template <class T>
std::vector<Side<T>> sides_of(const std::vector<EriClass<T>>& classes, const Sizes<T>& sizes,
                              T largest) {
  std::vector<Side<T>> sides;
  sides.reserve(classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c)
    sides.push_back(side_of(classes[c], sizes.of[c], largest));
  return sides;
}

}  // namespace pyscf_ipu::ISA
