// The codelets as XLA's foreign functions: unpack buffers, pick the instruction set, call.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

ffi::Error repulsion(Buffer half, Buffer d, Result y, Result energy) {
  return by_type(half.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().repulsion(data<T>(half), data<T>(d), d.dimensions()[0], data<T>(*y),
                             data<T>(*energy));
  });
}

template <class T>
Attraction<T> attraction_of(Buffer p, Buffer high, Buffer low, Buffer e, Buffer atom, Buffer charge,
                            Buffer nuclei_high, Buffer nuclei_low, ffi::Span<const double> boys) {
  const auto shape = e.dimensions();  // [S, chunks, depth, products, hermites]
  return {order_of(shape[4]), int(shape[3]), int(shape[2]), shape[0] * shape[1] * shape[2],
          charge.dimensions()[0], data<T>(p), data<T>(high), data<T>(low), data<T>(e),
          data<std::int32_t>(atom), data<T>(charge), data<T>(nuclei_high), data<T>(nuclei_low),
          boys.begin()};
}

ffi::Error nuclear_attraction(Buffer p, Buffer high, Buffer low, Buffer e, Buffer atom,
                              Buffer charge, Buffer nuclei_high, Buffer nuclei_low,
                              ffi::Span<const double> boys, Result out) {
  return by_type(p.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().nuclear_attraction(
        attraction_of<T>(p, high, low, e, atom, charge, nuclei_high, nuclei_low, boys),
        data<T>(*out));
  });
}

template <class T>
PairShells<T> shells_of(const Buffer* b, Buffer index, ffi::Span<const std::int32_t> powers,
                        ffi::Span<const double> transform) {
  const auto size = b[2].dimensions();  // [shells, primitives, columns]
  const int components = powers.size() / 4;
  int highest = 0;
  for (int c = 0; c < components; ++c) {
    const std::int32_t* p = powers.begin() + 4 * c;
    highest = std::max<int>(highest, p[0] + p[1] + p[2]);
  }
  if (highest > kMaxOrder / 2) throw std::invalid_argument("shells up to f are supported");
  return {data<T>(b[0]), data<T>(b[1]), data<T>(b[2]), data<T>(b[3]), data<T>(b[4]), data<T>(b[5]),
          data<std::int32_t>(index), powers.begin(), transform.begin(), size[1], int(size[2]),
          components, int(transform.size()) / components, highest};
}

// Arguments: exponents, coefficients and centres of both groups, each in two words; the two shells of
// every pair.
ffi::Error shell_pairs(ffi::RemainingArgs args, ffi::Span<const std::int32_t> powers_a,
                       ffi::Span<const std::int32_t> powers_b, ffi::Span<const double> transform_a,
                       ffi::Span<const double> transform_b, Result p, Result high, Result low,
                       Result e, Result kinetic) {
  return by_type(p->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto buffers = buffers_of(args);
    if (buffers.size() != 14) throw std::invalid_argument("shell_pairs takes fourteen arrays");
    const Buffer* b = buffers.data();
    best().of<T>().shell_pairs({shells_of<T>(b, b[12], powers_a, transform_a),
                                shells_of<T>(b + 6, b[13], powers_b, transform_b),
                                p->dimensions()[0], order_of(e->dimensions()[3]), data<T>(*p),
                                data<T>(*high), data<T>(*low), data<T>(*e), data<T>(*kinetic)});
  });
}

// Arguments: those of shell_pairs, and the weights of E and of the kinetic energies.
ffi::Error pair_gradient(ffi::RemainingArgs args, ffi::Span<const std::int32_t> powers_a,
                         ffi::Span<const std::int32_t> powers_b,
                         ffi::Span<const double> transform_a,
                         ffi::Span<const double> transform_b, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto buffers = buffers_of(args);
    if (buffers.size() != 16) throw std::invalid_argument("pair_gradient takes sixteen arrays");
    const Buffer* b = buffers.data();
    best().of<T>().pair_gradient({shells_of<T>(b, b[12], powers_a, transform_a),
                                  shells_of<T>(b + 6, b[13], powers_b, transform_b),
                                  out->dimensions()[0], order_of(b[14].dimensions()[3]), nullptr,
                                  nullptr, nullptr, data<T>(b[14]), data<T>(b[15])},
                                 data<T>(*out));
  });
}

template <class T>
EriProblem<T> eri_problem(const std::vector<Buffer>& buffers, ffi::Span<const std::int32_t> sizes,
                          ffi::Span<const std::int32_t> blocks, ffi::Span<const double> boys,
                          ffi::Span<const double> of, std::int64_t rows) {
  if (buffers.size() != sizes.size() / 2 * 5) throw std::invalid_argument("a class is five arrays");
  return {classes_of<T>(buffers, 0, sizes), blocks.begin(),
          static_cast<std::int64_t>(blocks.size() / 4), rows, boys.begin(), interaction_of<T>(of)};
}

// Arguments: p, high, low, e, segment of every class; sizes[classes, 2]: shell pairs per strip and
// first row.
ffi::Error eri(ffi::RemainingArgs args, ffi::Span<const std::int32_t> sizes,
               ffi::Span<const std::int32_t> blocks, ffi::Span<const double> boys,
               ffi::Span<const double> interaction, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto problem = eri_problem<T>(buffers_of(args), sizes, blocks, boys, interaction,
                                        out->dimensions()[0]);
    best().of<T>().eri(problem, data<T>(*out));
  });
}

// Arguments: those of eri, then the two AOs of every row and the places of AO pairs; passes[.., 5]: an interaction and its two
// factors.
ffi::Error supermatrix(ffi::RemainingArgs args, ffi::Span<const std::int32_t> sizes,
                       ffi::Span<const std::int32_t> blocks, ffi::Span<const double> boys,
                       ffi::Span<const double> passes, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto buffers = buffers_of(args);
    if (buffers.size() < 2 || passes.size() % 5)
      throw std::invalid_argument("supermatrix needs AOs, places, and five numbers a pass");
    const Buffer places = buffers.back();
    buffers.pop_back();
    const Buffer aos = buffers.back();
    buffers.pop_back();
    const double none[3] = {};
    SupermatrixProblem<T> problem{
        eri_problem<T>(buffers, sizes, blocks, boys, {none, 3}, aos.dimensions()[0]), {},
        data<std::int32_t>(aos), data<std::int32_t>(places),
        std::int32_t(places.dimensions()[0]), out->dimensions()[0]};
    for (const double* p = passes.begin(); p != passes.end(); p += 5)
      problem.passes.push_back({{T(p[0]), T(p[1]), T(p[2])}, T(p[3]), T(p[4])});
    best().of<T>().supermatrix(problem, data<T>(*out));
  });
}

// Arguments: those of eri, then the density matrix and the two AOs and the weight of every row;
// results: derivatives by centre and e of every class.
ffi::Error eri_gradient(ffi::RemainingArgs args, ffi::RemainingRets rets,
                        ffi::Span<const std::int32_t> sizes, ffi::Span<const std::int32_t> blocks,
                        ffi::Span<const double> boys, ffi::Span<const std::int32_t> patterns,
                        ffi::Span<const double> interaction, ffi::Span<const double> fractions) {
  auto first = rets.get<Buffer>(0);
  if (!first.has_value()) return ffi::Error::InvalidArgument("a result is not an array");
  return by_type((*first)->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto buffers = buffers_of(args);
    if (buffers.size() < 2) throw std::invalid_argument("eri_gradient needs a density matrix");
    const Buffer products = buffers.back();
    buffers.pop_back();
    const Buffer density = buffers.back();
    buffers.pop_back();
    EriGradientProblem<T> problem{
        eri_problem<T>(buffers, sizes, blocks, boys, interaction, products.dimensions()[0]), {},
        data<T>(density), data<std::int32_t>(products), density.dimensions()[0],
        T(fractions[0]), T(fractions[1])};
    const std::int32_t* pattern = patterns.begin();
    for (std::size_t c = 0; c < problem.eri.classes.size(); ++c) {
      auto centre = rets.get<Buffer>(2 * c), e = rets.get<Buffer>(2 * c + 1);
      if (!centre.has_value() || !e.has_value())
        throw std::invalid_argument("eri_gradient gives two arrays a class");
      problem.gradients.push_back({pattern, data<T>(**centre), data<T>(**e)});
      const auto size = (*e)->dimensions();
      pattern += size[3] * size[4];
    }
    best().of<T>().eri_gradient(problem);
  });
}

// Arguments: those of nuclear_attraction, and the weights of the products.
ffi::Error attraction_gradient(Buffer p, Buffer high, Buffer low, Buffer e, Buffer atom,
                               Buffer charge, Buffer nuclei_high, Buffer nuclei_low, Buffer weights,
                               ffi::Span<const double> boys, Result centre, Result by_e,
                               Result by_nuclei) {
  return by_type(p.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().attraction_gradient(
        attraction_of<T>(p, high, low, e, atom, charge, nuclei_high, nuclei_low, boys),
        {data<T>(weights), data<T>(*centre), data<T>(*by_e), data<T>(*by_nuclei)});
  });
}

}  // namespace

CODELET(supermatrix, results<1>(ffi::Ffi::Bind().RemainingArgs()
                                .Attr<ffi::Span<const std::int32_t>>("sizes")
                                .Attr<ffi::Span<const std::int32_t>>("blocks")
                                .Attr<ffi::Span<const double>>("boys")
                                .Attr<ffi::Span<const double>>("passes")))

CODELET(repulsion, results<2>(arguments<2>(ffi::Ffi::Bind())))

CODELET(nuclear_attraction, results<1>(arguments<8>(ffi::Ffi::Bind())
                                       .Attr<ffi::Span<const double>>("boys")))

CODELET(attraction_gradient, results<3>(arguments<9>(ffi::Ffi::Bind())
                                        .Attr<ffi::Span<const double>>("boys")))

CODELET(shell_pairs, results<5>(ffi::Ffi::Bind().RemainingArgs()
                                .Attr<ffi::Span<const std::int32_t>>("powers_a")
                                .Attr<ffi::Span<const std::int32_t>>("powers_b")
                                .Attr<ffi::Span<const double>>("transform_a")
                                .Attr<ffi::Span<const double>>("transform_b")))

CODELET(pair_gradient, results<1>(ffi::Ffi::Bind().RemainingArgs()
                                  .Attr<ffi::Span<const std::int32_t>>("powers_a")
                                  .Attr<ffi::Span<const std::int32_t>>("powers_b")
                                  .Attr<ffi::Span<const double>>("transform_a")
                                  .Attr<ffi::Span<const double>>("transform_b")))

CODELET(eri, results<1>(ffi::Ffi::Bind().RemainingArgs()
                        .Attr<ffi::Span<const std::int32_t>>("sizes")
                        .Attr<ffi::Span<const std::int32_t>>("blocks")
                        .Attr<ffi::Span<const double>>("boys")
                        .Attr<ffi::Span<const double>>("interaction")))

CODELET(eri_gradient, ffi::Ffi::Bind().RemainingArgs().RemainingRets()
                          .Attr<ffi::Span<const std::int32_t>>("sizes")
                          .Attr<ffi::Span<const std::int32_t>>("blocks")
                          .Attr<ffi::Span<const double>>("boys")
                          .Attr<ffi::Span<const std::int32_t>>("patterns")
                          .Attr<ffi::Span<const double>>("interaction")
                          .Attr<ffi::Span<const double>>("fractions"))

extern "C" __attribute__((visibility("default"))) const char* codelet_source_hash() {
  return SOURCE_HASH;
}

extern "C" __attribute__((visibility("default"))) const char* codelet_instruction_set() {
  return best().name;
}

extern "C" __attribute__((visibility("default"))) const char* codelet_processor() {
  return pyscf_ipu::of_processor();
}

extern "C" __attribute__((visibility("default"))) const char* codelet_built_by() {
  return BUILT_BY;
}

}  // namespace pyscf_ipu
