// Vectors of VECTOR_BYTES bytes, by the compiler's own vector types: the same source serves
// SSE2, AVX2, AVX-512 and plain 16-byte vectors elsewhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace pyscf_ipu::ISA {

template <class T>
struct Simd {
  typedef T type __attribute__((vector_size(VECTOR_BYTES)));
  using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef integer integers __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int width = VECTOR_BYTES / sizeof(T);
};

// Calls f with the constants 0 .. n - 1, for loops whose body has to be written out in any case.
template <int... i, class F>
inline __attribute__((always_inline)) void written_out(std::integer_sequence<int, i...>, F f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int n, class F>
inline __attribute__((always_inline)) void written_out(F f) {
  written_out(std::make_integer_sequence<int, n>(), f);
}

template <class T>
using Vec = typename Simd<T>::type;
template <class T>
using IntVec = typename Simd<T>::integers;
template <class T>
constexpr int kWidth = Simd<T>::width;

template <class T>
inline Vec<T> load(const T* from) {
  Vec<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
inline void store(T* to, Vec<T> v) {
  std::memcpy(to, &v, sizeof v);
}

template <class T>
inline Vec<T> splat(T x) {
  return x - Vec<T>{};
}

template <class T>
inline Vec<T> select(IntVec<T> mask, Vec<T> yes, Vec<T> no) {
  return mask ? yes : no;
}

// Whether any lane of a mask is set.
template <class T>
inline bool any(IntVec<T> mask) {
#ifdef __AVX512F__
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#else
  typename Simd<T>::integer found = 0;
  for (int i = 0; i < kWidth<T>; ++i) found |= mask[i];
  return found != 0;
#endif
}

// from[at[lane]] in every lane.
template <class T>
inline IntVec<T> gather(const std::int32_t* from, IntVec<T> at) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return (IntVec<T>)_mm512_i32gather_epi32((__m512i)at, from, 4);
#endif
  IntVec<T> found;
  for (int lane = 0; lane < kWidth<T>; ++lane) found[lane] = from[at[lane]];
  return found;
}

// to[at[lane]] += x[lane] in every lane, of which some may have the same place.  The gathers and
// scatters of AVX-512 are slower than this loop, by a fifth for all integrals in 6-31G*.
template <class T>
inline __attribute__((always_inline)) void add_each(T* to, IntVec<T> at, Vec<T> x) {
#pragma GCC unroll 16
  for (int lane = 0; lane < kWidth<T>; ++lane) to[at[lane]] += x[lane];
}

#ifdef __AVX512F__
// The first elements of v, in the lanes that the mask has, in order; zero elsewhere.
template <class T>
inline Vec<T> expand(unsigned mask, Vec<T> v) {
  if constexpr (std::is_same_v<T, float>)
    return (Vec<T>)_mm512_maskz_expand_ps(__mmask16(mask), (__m512)v);
  else
    return (Vec<T>)_mm512_maskz_expand_pd(__mmask8(mask), (__m512d)v);
}
#endif

// The elements of a, then b, with these numbers.
template <class T, int... index>
inline Vec<T> pick(Vec<T> a, Vec<T> b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, index...);
#else
  return __builtin_shuffle(a, b, IntVec<T>{index...});
#endif
}

template <class T>
inline T sum(Vec<T> v) {
  T total = 0;
  for (int i = 0; i < kWidth<T>; ++i) total += v[i];
  return total;
}

template <class T>
inline Vec<T> square_root(Vec<T> x) {
  Vec<T> y;
  for (int i = 0; i < kWidth<T>; ++i) y[i] = std::sqrt(x[i]);
  return y;
}

// 1/x to an ulp or so, for normal x.  The hardware's estimate of 14 bits needs one Newton step,
// whose own error (2^-28) is far below the rounding; AVX2's 12 bits would leave a bias.
template <class T>
inline Vec<T> reciprocal(Vec<T> x) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) {
    Vec<T> y = (Vec<T>)_mm512_rcp14_ps((__m512)x);
    return y + y * (T(1) - x * y);
  }
#endif
  return T(1) / x;
}

// 1/sqrt(x), likewise.
template <class T>
inline Vec<T> reciprocal_root(Vec<T> x) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) {
    Vec<T> y = (Vec<T>)_mm512_rsqrt14_ps((__m512)x);
    return y + (T(0.5) * y) * (T(1) - (x * y) * y);
  }
#endif
  return T(1) / square_root<T>(x);
}

// exp(-x) for x >= 0 to an ulp or so; 0 where it would be denormal.
template <class T>
inline Vec<T> exp_minus(Vec<T> x) {
  using I = IntVec<T>;
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T limit = is_float ? T(87) : T(708);
  constexpr int mantissa = is_float ? 23 : 52, bias = is_float ? 127 : 1023;
  const I far = x > limit;
  Vec<T> y = select<T>(far, splat<T>(limit), x);
  // -y = n ln 2 + r with |r| <= ln 2 / 2; adding and taking away 1.5 * 2^mantissa rounds.
  constexpr T shift = T(1.5) * T(std::int64_t(1) << mantissa);
  Vec<T> n = (y * T(-1.4426950408889634) + shift) - shift;
  constexpr T high = is_float ? T(0.693359375) : T(6.93147180369123816490e-01);
  constexpr T low = is_float ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  Vec<T> r = (-y - n * high) - n * low;
  // Taylor's series on |r| < 0.35: the next term is below half an ulp.
  constexpr int degree = is_float ? 7 : 13;
  Vec<T> p = splat<T>(T(1));
#pragma GCC unroll 16
  for (int k = degree; k >= 1; --k) p = T(1) + p * (r * (T(1) / T(k)));
  I exponent = (__builtin_convertvector(n, I) + bias) << mantissa;
  Vec<T> scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  return select<T>(far, Vec<T>{}, p * scale);
}

// An unevaluated sum, and Knuth's sum of two numbers with its rounding error.
template <class T>
struct TwoWords {
  Vec<T> high, low;
};

template <class T>
inline TwoWords<T> exact_sum(Vec<T> a, Vec<T> b) {
  const Vec<T> s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

}  // namespace pyscf_ipu::ISA
