// The codelets of density fitting as XLA's foreign functions.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

template <class T>
FittingProblem<T> problem_of(const std::vector<Buffer>& buffers,
                             ffi::Span<const std::int32_t> auxiliary,
                             ffi::Span<const std::int32_t> kets, ffi::Span<const double> boys,
                             ffi::Span<const double> interaction, std::int64_t rows,
                             std::int64_t functions) {
  return {classes_of<T>(buffers, 0, auxiliary),
          classes_of<T>(buffers, auxiliary.size() / 2 * 5, kets), rows, functions, boys.begin(),
          interaction_of<T>(interaction)};
}

// Arguments: p, high, low, e, segment of every auxiliary class, then of every class of kets.
ffi::Error fitting_integrals(ffi::RemainingArgs args, ffi::Span<const std::int32_t> auxiliary,
                             ffi::Span<const std::int32_t> kets, ffi::Span<const double> boys,
                             ffi::Span<const double> interaction, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = out->dimensions();
    best().of<T>().fitting_integrals(
        problem_of<T>(buffers_of(args), auxiliary, kets, boys, interaction, size[0], size[1]), data<T>(*out));
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
        problem_of<T>(buffers_of(args), auxiliary, kets, boys, interaction, size[0], size[1]),
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

// Arguments: integrals[rows, functions], factor[functions, functions], row[pairs].
ffi::Error fitting_solution(Buffer integrals, Buffer factor, Buffer row, Result out, Result present) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if (integrals.element_type() != ffi::F64 || factor.element_type() != ffi::F64)
      throw std::invalid_argument("fitting_solution takes float64 arrays");
    const auto size = out->dimensions();
    best().of<T>().fitting_solution(
        {data<double>(integrals), data<double>(factor), data<std::int32_t>(row), size[1], size[0]},
        data<T>(*out), data<std::int32_t>(*present));
  });
}

// Arguments: b[functions, pairs], present[pairs], rank, density[pairs], vectors[n, width], signs[width],
// count, whether a rough K will do.  Functions from the rank-th on are zero.
ffi::Error fitting_repulsion(Buffer b, Buffer present, Buffer rank, Buffer density, Buffer vectors,
                             Buffer signs, Buffer count, Buffer rough, ffi::Span<const std::int32_t> coulomb,
                             Result charge, Result j, Result k) {
  return by_type(b.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = b.dimensions(), columns = vectors.dimensions();
    std::fill_n(data<T>(*charge), size[0], T(0));
    best().of<T>().fitting_repulsion(
        {data<T>(b), data<std::int32_t>(present), data<T>(density), data<T>(vectors), data<T>(signs),
         *data<std::int32_t>(rank), size[1], columns[0], columns[1], *data<std::int32_t>(count),
         coulomb[0] != 0, *data<bool>(rough)},
        data<T>(*charge), data<T>(*j), data<T>(*k));
  });
}

template <class T>
ColumnsProblem<T> columns_of(Buffer row, Buffer columns, Buffer used, std::int64_t functions) {
  const auto size = columns.dimensions();
  return {data<std::int32_t>(row), data<T>(columns), size[0], size[1], *data<std::int32_t>(used), functions};
}

// Arguments: integrals[rows, functions], row[n, n], columns[n, width], how many of these are used.
ffi::Error fitting_columns(Buffer integrals, Buffer row, Buffer columns, Buffer used, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().fitting_columns(columns_of<T>(row, columns, used, out->dimensions()[2]),
                                   data<T>(integrals), data<T>(*out));
  });
}

// Arguments: weights[rows, functions], which are the result, too; row[n, n], columns[n, width], how many
// of these are used, w[n, width, functions].
ffi::Error fitting_weights(Buffer weights, Buffer row, Buffer columns, Buffer used, Buffer w, Result out) {
  return by_type(out->element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if (data<T>(*out) != data<T>(weights))
      std::copy_n(data<T>(weights), weights.element_count(), data<T>(*out));
    best().of<T>().fitting_weights(columns_of<T>(row, columns, used, out->dimensions()[1]), data<T>(w),
                                   data<T>(*out));
  });
}

}  // namespace

CODELET(fitting_columns, results<1>(arguments<4>(ffi::Ffi::Bind())))

CODELET(fitting_weights, results<1>(arguments<5>(ffi::Ffi::Bind())))

CODELET(fitting_solution, results<2>(arguments<3>(ffi::Ffi::Bind())))

CODELET(fitting_repulsion, results<3>(arguments<8>(ffi::Ffi::Bind())
                                      .Attr<ffi::Span<const std::int32_t>>("coulomb")))

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
