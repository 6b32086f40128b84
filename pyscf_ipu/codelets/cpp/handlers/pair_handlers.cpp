// The codelets of shell pairs, one-electron integrals and their derivatives.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

using Ints = ffi::Span<const std::int32_t>;
using Doubles = ffi::Span<const double>;

// From where on the groups' powers and transforms lie in the lists of all.
struct Group {
  int components, functions;
  const std::int32_t* powers;
  const double* transform;
};

std::vector<Group> groups_of(Ints groups, Ints powers, Doubles transforms) {
  std::vector<Group> found;
  const std::int32_t* power = powers.begin();
  const double* transform = transforms.begin();
  for (std::size_t g = 0; g < groups.size() / 2; ++g) {
    found.push_back({groups.begin()[2 * g], groups.begin()[2 * g + 1], power, transform});
    power += 4 * found.back().components;
    transform += found.back().functions * found.back().components;
  }
  return found;
}

// b: exponents, coefficients and centres, each in two words.
template <class T>
PairShells<T> shells_of(const Buffer* b, const std::int32_t* index, const Group& group) {
  const auto size = b[2].dimensions();  // [shells, primitives, columns]
  int highest = 0;
  for (int c = 0; c < group.components; ++c) {
    const std::int32_t* p = group.powers + 4 * c;
    highest = std::max<int>(highest, p[0] + p[1] + p[2]);
  }
  if (highest > kMaxOrder / 2) throw std::invalid_argument("shells up to f are supported");
  return {data<T>(b[0]), data<T>(b[1]), data<T>(b[2]), data<T>(b[3]), data<T>(b[4]), data<T>(b[5]),
          index, group.powers, group.transform, size[1], int(size[2]), group.components,
          group.functions, highest};
}

// Arguments: the six arrays of every group; of all pairs the first shells, the second ones, the places
// of their chunks and their places; members[n, 4]: two groups, class, number of pairs.  The classes
// have no members yet.
template <class T>
void add_members(PairStrips<T>& to, const std::vector<Buffer>& b, Ints members, Ints groups,
                 Ints powers, Doubles transforms) {
  const auto all = groups_of(groups, powers, transforms);
  const std::size_t first = 6 * all.size();
  if (b.size() < first + 4) throw std::invalid_argument("pairs are four arrays behind the shells");
  const std::int32_t* where = data<std::int32_t>(b[first + 2]);
  std::int64_t pair = 0, chunk = 0;
  int last = 0;
  for (const std::int32_t* m = members.begin(); m != members.end(); m += 4) {
    if (m[2] != last) where += to.classes[last].chunks, chunk = 0, last = m[2];
    const auto ints = [&](std::size_t i) { return data<std::int32_t>(b[first + i]) + pair; };
    const PairMember<T> found{shells_of<T>(&b[6 * m[0]], ints(0), all[m[0]]),
                              shells_of<T>(&b[6 * m[1]], ints(1), all[m[1]]),
                              m[3], m[2], where + chunk, ints(3), nullptr, nullptr};
    const std::int64_t k = found.a.primitives * found.b.primitives;
    const int depth = to.classes[last].depth;
    pair += m[3], chunk += m[3] * ((k + depth - 1) / depth);
    to.members.push_back(found);
  }
}

// e[S, chunks, depth, products, hermites]
template <class T>
PairClass<T> class_of(Buffer e, std::int64_t rows) {
  const auto size = e.dimensions();
  return {order_of(size[4]), int(size[3]), int(size[2]), size[0] * size[1], rows};
}

// Results: p, centre in two words, e and kinetic energy of every class.
ffi::Error pair_strips(ffi::RemainingArgs args, ffi::RemainingRets rets, Ints members, Ints groups,
                       Ints powers, Doubles transforms) {
  auto first = rets.get<Buffer>(0);
  if (!first.has_value()) return ffi::Error::InvalidArgument("a result is not an array");
  return by_type((*first)->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    PairStrips<T> to;
    for (std::size_t r = 0; r + 5 <= rets.size(); r += 5) {
      std::vector<Buffer> b;
      for (std::size_t i = r; i < r + 5; ++i) {
        auto found = rets.get<Buffer>(i);
        if (!found.has_value()) throw std::invalid_argument("a result is not an array");
        b.push_back(**found);
      }
      to.classes.push_back(class_of<T>(b[3], b[4].dimensions()[0]));
      PairClass<T>& c = to.classes.back();
      c.p = data<T>(b[0]), c.high = data<T>(b[1]), c.low = data<T>(b[2]), c.e = data<T>(b[3]);
      c.kinetic = data<T>(b[4]);
    }
    add_members(to, buffers_of(args), members, groups, powers, transforms);
    best().of<T>().pair_strips(to);
  });
}

// Arguments: those of pair_strips; of all pairs the atoms of the first shells and of the second ones;
// derivatives by centre, e and kinetic energy of every class.
ffi::Error pair_gradient(ffi::RemainingArgs args, Ints members, Ints groups, Ints powers,
                         Doubles transforms, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto b = buffers_of(args);
    const std::size_t atoms = 3 * groups.size() + 4;
    PairStrips<T> from;
    for (std::size_t i = atoms + 2; i + 3 <= b.size(); i += 3) {
      from.classes.push_back(class_of<T>(b[i + 1], b[i + 2].dimensions()[0]));
      PairClass<T>& c = from.classes.back();
      c.high = data<T>(b[i]), c.e = data<T>(b[i + 1]), c.kinetic = data<T>(b[i + 2]);
    }
    add_members(from, b, members, groups, powers, transforms);
    std::int64_t pair = 0;
    for (PairMember<T>& m : from.members) {
      m.atom_a = data<std::int32_t>(b[atoms]) + pair;
      m.atom_b = data<std::int32_t>(b[atoms + 1]) + pair;
      pair += m.pairs;
    }
    best().of<T>().pair_gradient(from, out->dimensions()[0], data<T>(*out));
  });
}

template <class T>
Attraction<T> attraction_of(const Buffer* b, const Buffer* nuclei, Doubles boys) {
  const auto shape = b[3].dimensions();  // [S, chunks, depth, products, hermites]
  return {order_of(shape[4]), int(shape[3]), int(shape[2]), shape[0] * shape[1] * shape[2],
          nuclei[0].dimensions()[0], data<T>(b[0]), data<T>(b[1]), data<T>(b[2]), data<T>(b[3]),
          data<std::int32_t>(b[4]), data<T>(nuclei[0]), data<T>(nuclei[1]), data<T>(nuclei[2]),
          boys.begin()};
}

// Arguments: p, high, low, e, atom and segment of every class; charges and nuclei in two words;
// sizes[classes]: shell pairs of a strip.
ffi::Error one_electron(ffi::RemainingArgs args, Ints sizes, Doubles boys, Result overlap,
                        Result nuclear, Result dipole) {
  return by_type(overlap->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto b = buffers_of(args);
    if (b.size() != 6 * sizes.size() + 3) throw std::invalid_argument("a class is six arrays");
    const Buffer* nuclei = &b[6 * sizes.size()];
    std::vector<OneElectronClass<T>> classes;
    for (std::size_t c = 0; c < sizes.size(); ++c)
      classes.push_back({attraction_of<T>(&b[6 * c], nuclei, boys), data<std::int32_t>(b[6 * c + 5]),
                         b[6 * c + 3].dimensions()[1], sizes.begin()[c]});
    best().of<T>().one_electron(classes, overlap->dimensions()[0], data<T>(*overlap),
                                data<T>(*nuclear), data<T>(*dipole));
  });
}

// Arguments: p, high, low, e and atom of a class; charges and nuclei; the weights of the products.
ffi::Error attraction_gradient(ffi::RemainingArgs args, Doubles boys, Result centre, Result by_e,
                               Result by_nuclei) {
  return by_type(centre->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto b = buffers_of(args);
    if (b.size() != 9) throw std::invalid_argument("attraction_gradient takes nine arrays");
    best().of<T>().attraction_gradient(
        attraction_of<T>(&b[0], &b[5], boys),
        {data<T>(b[8]), data<T>(*centre), data<T>(*by_e), data<T>(*by_nuclei)});
  });
}

// Results: rows of some tables each.  Arguments: all these tables, and the row of every place; plan:
// for every result the number of its tables, and for each of these the number of places, and these.
ffi::Error look_up(ffi::RemainingArgs args, ffi::RemainingRets rets, Ints plan) {
  auto first = rets.get<Buffer>(0);
  if (!first.has_value()) return ffi::Error::InvalidArgument("a result is not an array");
  return by_type((*first)->element_type(), [&](auto*) {
    const auto b = buffers_of(args);
    const std::int32_t* row = data<std::int32_t>(b.back());
    const std::int32_t* at = plan.begin();
    std::size_t table = 0;
    for (std::size_t r = 0; r < rets.size(); ++r) {
      char* to = data<char>(**rets.get<Buffer>(r));
      for (int tables = *at++; tables > 0; --tables, ++table) {
        const std::size_t size = b[table].size_bytes() / b[table].dimensions()[0];
        for (int places = *at++; places > 0; --places, to += size)
          std::memcpy(to, data<char>(b[table]) + row[*at++] * size, size);
      }
    }
  });
}

template <class Binding>
auto with_members(Binding&& binding) {
  return std::move(binding)
      .template Attr<Ints>("members")
      .template Attr<Ints>("groups")
      .template Attr<Ints>("powers")
      .template Attr<Doubles>("transforms");
}

}  // namespace

CODELET(look_up, ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<Ints>("plan"))
CODELET(pair_strips, with_members(ffi::Ffi::Bind().RemainingArgs().RemainingRets()))

CODELET(pair_gradient, results<1>(with_members(ffi::Ffi::Bind().RemainingArgs())))

CODELET(one_electron, results<3>(ffi::Ffi::Bind().RemainingArgs()
                                 .Attr<Ints>("sizes")
                                 .Attr<Doubles>("boys")))

CODELET(attraction_gradient, results<3>(ffi::Ffi::Bind().RemainingArgs().Attr<Doubles>("boys")))

}  // namespace pyscf_ipu
