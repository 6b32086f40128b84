// The sums in twice the working precision as XLA's foreign functions.
#include "handlers/handlers.hpp"

namespace pyscf_ipu {
namespace {

// Rows of an array of which every row gives one number.
std::int64_t rows_of(Buffer out) { return static_cast<std::int64_t>(out.element_count()); }

std::int64_t count_of(Buffer terms, Buffer out) {
  const std::int64_t rows = rows_of(out);
  return rows ? static_cast<std::int64_t>(terms.element_count()) / rows : 0;
}

ffi::Error compensated_sum(Buffer high, Buffer low, Result out_high, Result out_low) {
  return by_type(high.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().compensated_sum(data<T>(high), data<T>(low), rows_of(*out_high),
                                   count_of(high, *out_high), data<T>(*out_high),
                                   data<T>(*out_low));
  });
}

ffi::Error compensated_dot(Buffer a, Buffer high, Buffer low, Result out_high, Result out_low) {
  return by_type(a.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().compensated_dot(data<T>(a), data<T>(high), data<T>(low), rows_of(*out_high),
                                   count_of(a, *out_high), data<T>(*out_high), data<T>(*out_low));
  });
}

}  // namespace

CODELET(compensated_sum, results<2>(arguments<2>(ffi::Ffi::Bind())))
CODELET(compensated_dot, results<2>(arguments<3>(ffi::Ffi::Bind())))

}  // namespace pyscf_ipu
