// The codelets as XLA's foreign functions: unpack buffers, pick the instruction set, call.
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
        std::int32_t(places.dimensions()[0]), out->dimensions().back(),
        out->dimensions().size() == 2};
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

}  // namespace

CODELET(supermatrix, results<1>(ffi::Ffi::Bind().RemainingArgs()
                                .Attr<ffi::Span<const std::int32_t>>("sizes")
                                .Attr<ffi::Span<const std::int32_t>>("blocks")
                                .Attr<ffi::Span<const double>>("boys")
                                .Attr<ffi::Span<const double>>("passes")))

CODELET(repulsion, results<2>(arguments<2>(ffi::Ffi::Bind())))

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
