// The codelets of the integration grid as XLA's foreign functions.
#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

// A kernel over the points of some slots and all atoms; `kernel` picks it from the table.
template <class Pick>
ffi::Error over_slots(Buffer points, Buffer volume, Buffer owner, Buffer high, Buffer low,
                      Buffer radius, Buffer mask, Result out, Pick kernel) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    kernel(best().of<T>())(data<T>(points), data<T>(volume), data<std::int32_t>(owner),
                           data<T>(high), data<T>(low), data<T>(radius), data<bool>(mask),
                           volume.dimensions()[0], volume.dimensions()[1],
                           radius.dimensions()[0], data<T>(*out));
  });
}

#define OVER_SLOTS(name)                                                                      \
  ffi::Error name(Buffer points, Buffer volume, Buffer owner, Buffer high, Buffer low,        \
                  Buffer radius, Buffer mask, Result out) {                                   \
    return over_slots(points, volume, owner, high, low, radius, mask, out,                    \
                      [](const auto& table) { return table.name; });                          \
  }
OVER_SLOTS(becke_weights)
OVER_SLOTS(becke_gradient)
#undef OVER_SLOTS

// A kernel over pairs of points.
#define OVER_PAIRS(name)                                                                      \
  ffi::Error name(Buffer points, Buffer omega, Buffer kappa, Buffer electrons, Result out) {  \
    return by_type(points.element_type(), [&](auto* null) {                                   \
      using T = std::remove_pointer_t<decltype(null)>;                                        \
      best().of<T>().name(data<T>(points), data<T>(omega), data<T>(kappa), data<T>(electrons), \
                          omega.dimensions()[0], data<T>(*out));                              \
    });                                                                                       \
  }
OVER_PAIRS(nonlocal_pairs)
OVER_PAIRS(nonlocal_gradient)
#undef OVER_PAIRS

// The arrays that both forms of AO values take, and the size [T, D, N, Gb] of their result.
template <class T>
AoProblem<T> ao_problem(Buffer points, Buffer owner, Buffer high, Buffer low, Buffer exponents,
                        Buffer coefficients, ffi::Span<const std::int32_t> shells,
                        ffi::Span<const double> pure_d, ffi::Span<const double> pure_f,
                        ffi::Span<const std::int64_t> size) {
  return {data<T>(points), data<std::int32_t>(owner), data<T>(high), data<T>(low),
          data<T>(exponents), data<T>(exponents) + exponents.dimensions()[1],
          data<T>(coefficients), data<T>(coefficients) + coefficients.dimensions()[1], shells.begin(),
          std::int64_t(shells.size() / 9), pure_d.begin(), pure_f.begin(), int(pure_d.size() / 6),
          int(pure_f.size() / 10), size[0], size[1], size[2], size[3]};
}

ffi::Error ao_values(Buffer points, Buffer owner, Buffer high, Buffer low, Buffer exponents,
                     Buffer coefficients, ffi::Span<const std::int32_t> shells,
                     ffi::Span<const double> pure_d, ffi::Span<const double> pure_f, Result out) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().ao_values(ao_problem<T>(points, owner, high, low, exponents, coefficients,
                                           shells, pure_d, pure_f, out->dimensions()),
                             data<T>(*out));
  });
}

ffi::Error packed_ao_values(Buffer points, Buffer owner, Buffer high, Buffer low, Buffer exponents,
                            Buffer coefficients, Buffer weights,
                            ffi::Span<const std::int32_t> shells, ffi::Span<const double> pure_d,
                            ffi::Span<const double> pure_f, double negligible, Result out,
                            Result aos, Result count) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().packed_ao_values(
        ao_problem<T>(points, owner, high, low, exponents, coefficients, shells, pure_d, pure_f,
                      out->dimensions()),
        {data<T>(weights), T(negligible)}, data<T>(*out), data<std::int32_t>(*aos),
        data<std::int32_t>(*count));
  });
}

template <class T>
AoBlocks<T> blocks_of(Buffer ao, Buffer aos, Buffer count) {
  const auto size = ao.dimensions();
  return {data<T>(ao), data<std::int32_t>(aos), data<std::int32_t>(count), size[0],
          size[1] * size[2] * size[3], size[1], size[2], size[3]};
}

// vectors[N, C], of which the first `columns` count.
template <class T>
DensityColumns<T> columns_of(Buffer vectors, const T* signs, Buffer columns) {
  return {data<T>(vectors), signs, vectors.dimensions()[1], *data<std::int32_t>(columns)};
}

ffi::Error xc_gradient(Buffer points, Buffer owner, Buffer high, Buffer low, Buffer exponents,
                       Buffer coefficients, Buffer ao, Buffer aos, Buffer count, Buffer factors,
                       Buffer density, Buffer columns, ffi::Span<const std::int32_t> shells,
                       ffi::Span<const double> pure_d, ffi::Span<const double> pure_f,
                       Result out) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().xc_gradient(
        {ao_problem<T>(points, owner, high, low, exponents, coefficients, shells, pure_d, pure_f,
                       ao.dimensions()),
         blocks_of<T>(ao, aos, count), data<T>(factors), columns_of<T>(density, nullptr, columns),
         factors.dimensions()[1], out->dimensions()[0]},
        data<T>(*out));
  });
}

ffi::Error xc_density(Buffer ao, Buffer aos, Buffer count, Buffer density, Result out) {
  return by_type(ao.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().xc_density(blocks_of<T>(ao, aos, count), data<T>(density), data<T>(*out));
  });
}

ffi::Error xc_potential(Buffer ao, Buffer aos, Buffer count, Buffer factors, Result out) {
  return by_type(ao.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto blocks = blocks_of<T>(ao, aos, count);
    const auto moments = factors.dimensions()[1];
    if (out->element_type() == ao.element_type())
      best().of<T>().xc_potential(blocks, data<T>(factors), moments, data<T>(*out));
    else
      best().of<T>().wide_xc_potential(blocks, data<T>(factors), moments, data<double>(*out));
  });
}

ffi::Error xc_moments(Buffer ao, Buffer aos, Buffer count, Buffer vectors, Buffer signs,
                      Buffer columns, Result out) {
  return by_type(ao.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().xc_moments(blocks_of<T>(ao, aos, count), columns_of<T>(vectors, data<T>(signs), columns),
                              out->dimensions()[1], data<T>(*out));
  });
}

ffi::Error xc_projection(Buffer ao, Buffer aos, Buffer count, Buffer factors, Buffer vectors,
                         Buffer signs, Buffer columns, Result out) {
  return by_type(ao.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().xc_projection(blocks_of<T>(ao, aos, count), data<T>(factors),
                                 columns_of<T>(vectors, data<T>(signs), columns), factors.dimensions()[1],
                                 data<double>(*out));
  });
}

}  // namespace

CODELET(becke_weights, results<1>(arguments<7>(ffi::Ffi::Bind())))
CODELET(becke_gradient, results<1>(arguments<7>(ffi::Ffi::Bind())))

CODELET(nonlocal_pairs, results<1>(arguments<4>(ffi::Ffi::Bind())))
CODELET(nonlocal_gradient, results<1>(arguments<4>(ffi::Ffi::Bind())))

CODELET(ao_values, results<1>(arguments<6>(ffi::Ffi::Bind())
                              .Attr<ffi::Span<const std::int32_t>>("shells")
                              .Attr<ffi::Span<const double>>("pure_d")
                              .Attr<ffi::Span<const double>>("pure_f")))

CODELET(packed_ao_values, results<3>(arguments<7>(ffi::Ffi::Bind())
                                     .Attr<ffi::Span<const std::int32_t>>("shells")
                                     .Attr<ffi::Span<const double>>("pure_d")
                                     .Attr<ffi::Span<const double>>("pure_f")
                                     .Attr<double>("negligible")))

CODELET(xc_gradient, results<1>(arguments<12>(ffi::Ffi::Bind())
                                .Attr<ffi::Span<const std::int32_t>>("shells")
                                .Attr<ffi::Span<const double>>("pure_d")
                                .Attr<ffi::Span<const double>>("pure_f")))

CODELET(xc_density, results<1>(arguments<4>(ffi::Ffi::Bind())))
CODELET(xc_potential, results<1>(arguments<4>(ffi::Ffi::Bind())))
CODELET(xc_moments, results<1>(arguments<6>(ffi::Ffi::Bind())))
CODELET(xc_projection, results<1>(arguments<7>(ffi::Ffi::Bind())))

}  // namespace pyscf_ipu
