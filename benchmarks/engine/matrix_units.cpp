// What bfloat16 matrix units (AMX) would save in the two products of XC: processor cycles for a block
// of 64 points on which 38 AOs count, all arrays in the first caches.
//
//   g++ -std=c++17 -O3 -mavx512f -mavx512vl -mavx512dq -mavx512bw -mavx512bf16 -mamx-tile -mamx-bf16
//     -mfma -mprefer-vector-width=512 -Wno-psabi -Ipyscf_ipu/codelets/cpp
//     benchmarks/engine/matrix_units.cpp -o /tmp/matrix_units && taskset -c 0 /tmp/matrix_units
//
// (one line).  Linux on a processor with AMX; GCC 12 or newer.
#define ISA avx512
#define VECTOR_BYTES 64
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "grid/xc.hpp"

using namespace pyscf_ipu::avx512;

namespace {

constexpr int kAos = 38, kTimes = 50, kRounds = 300;

alignas(64) std::uint16_t left[2][3][2][512], right[2][2][4][512];  // pieces of tiles in bfloat16
alignas(64) float ao[4 * 64 * 64], density[64 * 64], weighted[64 * 64], product[48 * 64];

// Shortest time of a call in ns.
template <class F>
double nanoseconds(F f) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) f();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / kTimes);
  }
  return best;
}

// Cycles in a ns, from sixteen chains of multiply-adds: two of them start in a cycle.
double frequency() {
  Vec<float> sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = splat<float>(0.1f * i);
  const Vec<float> a = splat<float>(0.999f), b = splat<float>(1e-3f);
  const double ns = nanoseconds([&] {
    for (int k = 0; k < 1000; ++k)
#pragma GCC unroll 16
      for (auto& x : sums) x = x * a + b;
  });
  volatile float used = 0;
  for (auto& x : sums) used = used + x[0];
  return 8000 / ns;
}

// product[48, 64] = left right, summed over the pairs of pieces that count.
void in_tiles(int pieces) {
  for (int n = 0; n < 4; ++n) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    for (int k = 0; k < 2; ++k)
      for (int p = 0; p < pieces; ++p)
        for (int q = 0; p + q < pieces; ++q) {
          _tile_loadd(3, right[q % 2][k][n], 64);
          _tile_loadd(4, left[p % 2][0][k], 64);
          _tile_loadd(5, left[p % 2][1][k], 64);
          _tile_loadd(6, left[p % 2][2][k], 64);
          _tile_dpbf16ps(0, 4, 3);
          _tile_dpbf16ps(1, 5, 3);
          _tile_dpbf16ps(2, 6, 3);
        }
    _tile_stored(0, product + n * 16, 256);
    _tile_stored(1, product + 16 * 64 + n * 16, 256);
    _tile_stored(2, product + 32 * 64 + n * 16, 256);
  }
}

bool configure() {
  constexpr int kRequest = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequest, kTileData)) return false;
  alignas(64) struct {
    std::uint8_t palette = 1, start = 0, none[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 8; ++t) {
    config.bytes[t] = 64;
    config.rows[t] = 16;
  }
  asm volatile("" : : "r"(&config) : "memory");  // GCC 12 overlooks that all of it is read
  _tile_loadconfig(&config);
  return true;
}

}  // namespace

int main() {
  if (!configure()) return std::puts("this machine has no AMX, or Linux does not allow it"), 1;
  const double ghz = frequency();
  std::printf("%.2f GHz\n", ghz);
  for (int pieces = 1; pieces <= 3; ++pieces)
    std::printf("tiles, 48 x 64 x 64, %d pieces   %6.0f cycles\n", pieces,
                ghz * nanoseconds([&] { in_tiles(pieces); }));

  std::int32_t aos[kAos];
  for (int k = 0; k < kAos; ++k) aos[k] = k + k / 4;
  const Chunk<float> chunk{ao, 64 * 64, 64, kAos, aos};
  Vec<float> sums[1][kColumns] = {};
  std::printf("AVX-512, density              %6.0f cycles\n", ghz * nanoseconds([&] {
    for (int i = 0; i < kAos; i += kRows)
      by_number<kRows>(kAos - i, [&](auto rows) {
        add_to_density<float, 1, rows>(chunk, ao, i, density, 64, sums);
      });
  }));
  std::vector<float> packed(kRows * 64 + 16), total(64 * 64);
  Spread<float> spread(64);
  spread.choose(aos, kAos);
  std::printf("AVX-512, matrix               %6.0f cycles\n", ghz * nanoseconds([&] {
    add_chunk<float>(chunk, spread, weighted, 64, packed.data(), total.data());
  }));
  return 0;
}
