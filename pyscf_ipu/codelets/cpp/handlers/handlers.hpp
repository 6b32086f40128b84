// What every handler needs: the instruction set, the element type, pointers, and registration.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include "kernels.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace pyscf_ipu {

// Whether the environment variable PYSCF_IPU_CODELETS leaves this instruction set open.
inline bool wanted(const char* name) {
  const char* value = std::getenv("PYSCF_IPU_CODELETS");
  return !value || !std::strcmp(value, "on") || !std::strcmp(value, name);
}

// The kernels of the widest instruction set that this processor has.
inline const InstructionSet& best() {
  static const InstructionSet chosen = [] {
#if HAS_avx512
    if (wanted("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
      return avx512::kernels();
#endif
#if HAS_avx2
    if (wanted("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kernels();
#endif
    return baseline::kernels();
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
