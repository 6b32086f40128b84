// The codelets of density fitting as XLA's foreign functions.
#include <stdexcept>
#include <vector>

#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

int order_of(std::int64_t hermites) {
  int order = 0;
  while ((order + 1) * (order + 2) * (order + 3) / 6 < hermites) ++order;
  if (order > kMaxOrder) throw std::invalid_argument("shells beyond g or pairs beyond f");
  return order;
}

// Five arrays a class, from number `first` on; sizes[classes, 2]: shells per strip and first row.
template <class T>
std::vector<EriClass<T>> classes_of(ffi::RemainingArgs args, std::size_t first,
                                    ffi::Span<const std::int32_t> sizes) {
  std::vector<EriClass<T>> found;
  if (args.size() < first + sizes.size() / 2 * 5)
    throw std::invalid_argument("fitting_integrals takes five arrays a class");
  for (std::size_t c = 0; c < sizes.size() / 2; ++c) {
    std::vector<Buffer> b;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto buffer = args.get<Buffer>(first + 5 * c + i);
      if (!buffer.has_value()) throw std::invalid_argument("an argument is not an array");
      b.push_back(*buffer);
    }
    const auto e = b[3].dimensions();  // [S, chunks, depth, products, hermites]
    found.push_back({order_of(e[4]), int(e[3]), int(e[0]), int(e[1]), int(e[2]),
                     sizes.begin()[2 * c], sizes.begin()[2 * c + 1], data<T>(b[0]), data<T>(b[1]),
                     data<T>(b[2]), data<T>(b[3]), data<std::int32_t>(b[4])});
  }
  return found;
}

template <class T>
FittingProblem<T> problem_of(ffi::RemainingArgs args, ffi::Span<const std::int32_t> auxiliary,
                             ffi::Span<const std::int32_t> kets, ffi::Span<const double> boys,
                             ffi::Span<const double> interaction, std::int64_t rows,
                             std::int64_t functions) {
  if (interaction.size() != 3) throw std::invalid_argument("an interaction is three numbers");
  const double* of = interaction.begin();
  return {classes_of<T>(args, 0, auxiliary), classes_of<T>(args, auxiliary.size() / 2 * 5, kets),
          rows, functions, boys.begin(), {T(of[0]), T(of[1]), T(of[2])}};
}

// Arguments: p, high, low, e, segment of every auxiliary class, then of every class of kets.
ffi::Error fitting_integrals(ffi::RemainingArgs args, ffi::Span<const std::int32_t> auxiliary,
                             ffi::Span<const std::int32_t> kets, ffi::Span<const double> boys,
                             ffi::Span<const double> interaction, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = out->dimensions();
    best().of<T>().fitting_integrals(
        problem_of<T>(args, auxiliary, kets, boys, interaction, size[0], size[1]), data<T>(*out));
  });
}

// Arguments: those of fitting_integrals, then the weights [rows, functions]; results: the centres of
// every auxiliary class, then centre and e of every class of kets.
ffi::Error fitting_gradient(ffi::RemainingArgs args, ffi::RemainingRets rets,
                            ffi::Span<const std::int32_t> auxiliary,
                            ffi::Span<const std::int32_t> kets, ffi::Span<const double> boys,
                            ffi::Span<const double> interaction) {
  const auto weights = args.get<Buffer>(args.size() - 1);
  if (!weights.has_value()) return ffi::Error::InvalidArgument("an argument is not an array");
  return by_type(weights->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = weights->dimensions();
    FittingGradientProblem<T> problem{
        problem_of<T>(args, auxiliary, kets, boys, interaction, size[0], size[1]),
        data<T>(*weights), {}, {}, {}};
    const auto result = [&](std::size_t i) {
      auto found = rets.get<Buffer>(i);
      if (!found.has_value()) throw std::invalid_argument("a result is not an array");
      return data<T>(**found);
    };
    const std::size_t bras = auxiliary.size() / 2;
    for (std::size_t b = 0; b < bras; ++b) problem.bra_centres.push_back(result(b));
    for (std::size_t c = 0; c < kets.size() / 2; ++c) {
      problem.ket_centres.push_back(result(bras + 2 * c));
      problem.ket_e.push_back(result(bras + 2 * c + 1));
    }
    best().of<T>().fitting_gradient(problem);
  });
}

}  // namespace

CODELET(fitting_integrals, results<1>(ffi::Ffi::Bind().RemainingArgs()
                                      .Attr<ffi::Span<const std::int32_t>>("auxiliary")
                                      .Attr<ffi::Span<const std::int32_t>>("kets")
                                      .Attr<ffi::Span<const double>>("boys")
                                      .Attr<ffi::Span<const double>>("interaction")))

CODELET(fitting_gradient, ffi::Ffi::Bind().RemainingArgs().RemainingRets()
                              .Attr<ffi::Span<const std::int32_t>>("auxiliary")
                              .Attr<ffi::Span<const std::int32_t>>("kets")
                              .Attr<ffi::Span<const double>>("boys")
                              .Attr<ffi::Span<const double>>("interaction"))

}  // namespace pyscf_ipu
