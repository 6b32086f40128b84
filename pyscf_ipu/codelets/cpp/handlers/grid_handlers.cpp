// The codelets of the integration grid as XLA's foreign functions.
#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

ffi::Error becke_weights(Buffer points, Buffer volume, Buffer owner, Buffer high, Buffer low,
                         Buffer radius, Buffer mask, Result out) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().becke_weights(data<T>(points), data<T>(volume), data<std::int32_t>(owner),
                                 data<T>(high), data<T>(low), data<T>(radius), data<bool>(mask),
                                 volume.dimensions()[0], volume.dimensions()[1],
                                 radius.dimensions()[0], data<T>(*out));
  });
}

ffi::Error ao_values(Buffer points, Buffer owner, Buffer weights, Buffer high, Buffer low,
                     Buffer exponents, Buffer coefficients, ffi::Span<const std::int32_t> shells,
                     ffi::Span<const double> pure_d, ffi::Span<const double> pure_f,
                     double negligible, Result out, Result live) {
  return by_type(points.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = out->dimensions();  // [T, D, N, Gb]
    const AoProblem<T> problem{
        data<T>(points), data<std::int32_t>(owner), data<T>(high), data<T>(low), data<T>(exponents),
        data<T>(coefficients), shells.begin(), std::int64_t(shells.size() / 9), pure_d.begin(),
        pure_f.begin(), int(pure_d.size() / 6), int(pure_f.size() / 10), size[0], size[1], size[2],
        size[3], data<T>(weights), negligible};
    best().of<T>().ao_values(problem, data<T>(*out), data<T>(*live));
  });
}

// A kernel over ao[T, D, N, Gb], the AOs that count, and one more array; `kernel` picks it from the
// table.
template <class Pick>
ffi::Error over_blocks(Buffer ao, Buffer live, Buffer other, Result out, Pick kernel) {
  return by_type(ao.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto size = ao.dimensions();
    const AoBlocks<T> blocks{data<T>(ao), data<T>(live), size[0], size[1], size[2], size[3]};
    kernel(best().of<T>())(blocks, data<T>(other), data<T>(*out));
  });
}

ffi::Error xc_density(Buffer ao, Buffer live, Buffer density, Result out) {
  return over_blocks(ao, live, density, out, [](const auto& table) { return table.xc_density; });
}

ffi::Error xc_potential(Buffer ao, Buffer live, Buffer factors, Result out) {
  return over_blocks(ao, live, factors, out, [](const auto& table) { return table.xc_potential; });
}

ffi::Error xc_kinetic_density(Buffer ao, Buffer live, Buffer density, Result out) {
  return over_blocks(ao, live, density, out,
                     [](const auto& table) { return table.xc_kinetic_density; });
}

ffi::Error xc_kinetic_potential(Buffer ao, Buffer live, Buffer factors, Result out) {
  return over_blocks(ao, live, factors, out,
                     [](const auto& table) { return table.xc_kinetic_potential; });
}

}  // namespace

CODELET(becke_weights, results<1>(arguments<7>(ffi::Ffi::Bind())))

CODELET(ao_values, results<2>(arguments<7>(ffi::Ffi::Bind())
                              .Attr<ffi::Span<const std::int32_t>>("shells")
                              .Attr<ffi::Span<const double>>("pure_d")
                              .Attr<ffi::Span<const double>>("pure_f")
                              .Attr<double>("negligible")))

CODELET(xc_density, results<1>(arguments<3>(ffi::Ffi::Bind())))
CODELET(xc_potential, results<1>(arguments<3>(ffi::Ffi::Bind())))
CODELET(xc_kinetic_density, results<1>(arguments<3>(ffi::Ffi::Bind())))
CODELET(xc_kinetic_potential, results<1>(arguments<3>(ffi::Ffi::Bind())))

}  // namespace pyscf_ipu
