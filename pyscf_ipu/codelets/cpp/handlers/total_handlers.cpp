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

ffi::Error exact_product(Buffer a, Buffer a_low, Buffer b, Buffer b_low, Result out,
                         Result out_low) {
  const auto left = a.dimensions(), right = b.dimensions();
  if (left.size() != 2 || right.size() != 2 || left[1] != right[0])
    return ffi::Error::InvalidArgument("exact_product takes two matrices that fit");
  return by_type(a.element_type(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    best().of<T>().exact_product(data<T>(a), data<T>(a_low), data<T>(b), data<T>(b_low), left[0],
                                 left[1], right[1], data<T>(*out), data<T>(*out_low));
  });
}

}  // namespace

CODELET(compensated_sum, results<2>(arguments<2>(ffi::Ffi::Bind())))
CODELET(compensated_dot, results<2>(arguments<3>(ffi::Ffi::Bind())))
CODELET(exact_product, results<2>(arguments<4>(ffi::Ffi::Bind())))

}  // namespace pyscf_ipu
