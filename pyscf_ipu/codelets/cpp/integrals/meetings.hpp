// Primitives of a bra and of a group of kets: which of them meet, and where.
#pragma once

#include "integrals/eri_sides.hpp"
#include "simd.hpp"

namespace pyscf_ipu::ISA {

// Where a primitive of a bra meets kWidth primitives of kets.
template <class T>
struct Meeting {
  Vec<T> inverse_root, alpha, d[3];

  Meeting(const Primitive<T>& p, const KetVector<T>& q)
      : inverse_root(reciprocal_root<T>(p.p + q.q)),
        alpha((p.p * q.q) * (inverse_root * inverse_root)) {
    for (int i = 0; i < 3; ++i) d[i] = (p.high[i] - q.high[i]) + (p.low[i] - q.low[i]);
  }
};

// For every primitive q of a group of kets: begin(), each(p, q) for every primitive p of the bra that
// is not negligible beside it, end(q).
template <class T, class Begin, class Each, class End>
inline __attribute__((always_inline)) void each_meeting(const ShellPair<T>& pair,
                                                        const KetGroup<T>& group, Begin begin,
                                                        Each each, End end) {
  for (const auto& q : group.primitives) {
    if (pair.primitives.front().size * q.size < kNegligible<T>) continue;
    begin();
    for (const auto& p : pair.primitives) {
      if (p.size * q.size < kNegligible<T>) break;
      each(p, q);
    }
    end(q);
  }
}

}  // namespace pyscf_ipu::ISA
