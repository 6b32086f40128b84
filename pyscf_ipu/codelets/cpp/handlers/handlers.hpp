// What every handler needs: the instruction set, the element type, pointers, and registration.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace pyscf_ipu {

// Whether the environment variable PYSCF_IPU_CODELETS leaves this instruction set open.
inline bool wanted(const char* name) {
  const char* value = std::getenv("PYSCF_IPU_CODELETS");
  return !value || !std::strcmp(value, "on") || !std::strcmp(value, name);
}

// The widest instruction set of this processor, whether it was compiled or not.
inline const char* of_processor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

#define INSTRUCTION_SET(isa) InstructionSet{#isa, isa::table<float>(), isa::table<double>()}

// The kernels of the widest instruction set that was compiled and that this processor has.
inline const InstructionSet& best() {
  static const InstructionSet chosen = [] {
#if HAS_avx512
    if (wanted("avx512") && !std::strcmp(of_processor(), "avx512")) return INSTRUCTION_SET(avx512);
#endif
#if HAS_avx2
    if (wanted("avx2") && std::strcmp(of_processor(), "baseline")) return INSTRUCTION_SET(avx2);
#endif
    return INSTRUCTION_SET(baseline);
  }();
  return chosen;
}

// Calls f with a null pointer of the buffer's element type, float or double.
template <class F>
ffi::Error by_type(ffi::DataType type, F f) {
  try {  // XLA is called through C: nothing may be thrown across
    if (type == ffi::F32) return f(static_cast<float*>(nullptr)), ffi::Error::Success();
    if (type == ffi::F64) return f(static_cast<double*>(nullptr)), ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
  return ffi::Error::InvalidArgument("codelets take float32 or float64 arrays");
}

using Buffer = ffi::AnyBuffer;
using Result = ffi::Result<ffi::AnyBuffer>;

template <class T>
T* data(Buffer buffer) { return static_cast<T*>(buffer.untyped_data()); }

// Hermite order from the number of Hermites.
inline int order_of(std::int64_t hermites) {
  int order = 0;
  while ((order + 1) * (order + 2) * (order + 3) / 6 < hermites) ++order;
  if (order > kMaxOrder) throw std::invalid_argument("pairs of shells beyond f");
  return order;
}

inline std::vector<Buffer> buffers_of(ffi::RemainingArgs args) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto buffer = args.get<Buffer>(i);
    if (!buffer.has_value()) throw std::invalid_argument("an argument is not an array");
    buffers.push_back(*buffer);
  }
  return buffers;
}

// Five arrays a class, p, high, low, e and segment, from b[first] on; sizes[classes, 2]: shell pairs
// per strip and first row.
template <class T>
std::vector<EriClass<T>> classes_of(const std::vector<Buffer>& b, std::size_t first,
                                    ffi::Span<const std::int32_t> sizes) {
  std::vector<EriClass<T>> found;
  if (b.size() < first + sizes.size() / 2 * 5)
    throw std::invalid_argument("a class is five arrays");
  for (std::size_t c = 0; c < sizes.size() / 2; ++c, first += 5) {
    const auto e = b[first + 3].dimensions();  // [S, chunks, depth, products, hermites]
    found.push_back({order_of(e[4]), int(e[3]), int(e[0]), int(e[1]), int(e[2]),
                     sizes.begin()[2 * c], sizes.begin()[2 * c + 1], data<T>(b[first]),
                     data<T>(b[first + 1]), data<T>(b[first + 2]), data<T>(b[first + 3]),
                     data<std::int32_t>(b[first + 4])});
  }
  return found;
}

template <class T>
Interaction<T> interaction_of(ffi::Span<const double> of) {
  if (of.size() != 3) throw std::invalid_argument("an interaction is three numbers");
  return {T(of.begin()[0]), T(of.begin()[1]), T(of.begin()[2])};
}

// A binding with `count` >= 1 arrays more as arguments, or as results.  Bindings cannot be moved, so
// the last step returns what the library's own call makes.
template <int count, class Binding>
auto arguments(Binding&& binding) {
  if constexpr (count == 1)
    return std::move(binding).template Arg<Buffer>();
  else
    return arguments<count - 1>(std::move(binding).template Arg<Buffer>());
}

template <int count, class Binding>
auto results(Binding&& binding) {
  if constexpr (count == 1)
    return std::move(binding).template Ret<Buffer>();
  else
    return results<count - 1>(std::move(binding).template Ret<Buffer>());
}

}  // namespace pyscf_ipu

#define CODELET(name, ...)                                           \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error*   \
      codelet_##name(XLA_FFI_CallFrame* frame) {                     \
    static auto* handler = (__VA_ARGS__).To(name).release();         \
    return handler->Call(frame);                                     \
  }
