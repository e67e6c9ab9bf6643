// Rates of the matrix kernels on this machine, beside the limits measured in the same process.
//   bench_linear [--isa NAME] [--threads T] [--formats a,b] [--cores s16,s8,f32] [--rows 1,512] [--shape NxK] [--mb MB]
// Decode (few rows): GB/s of packed bytes over a set of matrices larger than the caches, and as a share of the plain
// read rate. Prefill: Gop/s (multiply and add are two) and share of the register-only dot loop of that core. Times are
// the median (--best: the least) of CPU time per member (the slowest member counts), which a busy machine disturbs less
// than wall time.
#include <immintrin.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <functional>

#include "../cpu/linear_cases.h"
#include "base/team.h"
#include "cpu/linear/layout.h"
#include "cpu/weight_arena.h"

namespace {

using namespace hearth;
using namespace hearth::cpu;

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

bool g_best = false;

// Median (or least) over `repeats` of the slowest member's CPU time.
double seconds(Team& team, int repeats, const std::function<void(int)>& work) {
  std::vector<double> all, member(static_cast<size_t>(team.size()));
  for (int i = 0; i <= repeats; ++i) {
    team.run([&](int m) {
      const double start = cpu_seconds();
      work(m);
      member[static_cast<size_t>(m)] = cpu_seconds() - start;
    });
    if (i > 0) all.push_back(*std::max_element(member.begin(), member.end()));  // the first is a warm-up
  }
  if (g_best) return *std::min_element(all.begin(), all.end());
  std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

// Register-only loops of 12 independent sums, `step` a turn; Gop/s of one thread.
template <class V, class Step>
__attribute__((always_inline)) inline double rate(double ops, Step step) {
  V s[12] = {};
  constexpr int64_t kLoops = 2000000;
  const double start = cpu_seconds();
  for (int64_t i = 0; i < kLoops; ++i) {
    step(s[0]), step(s[1]), step(s[2]), step(s[3]), step(s[4]), step(s[5]);
    step(s[6]), step(s[7]), step(s[8]), step(s[9]), step(s[10]), step(s[11]);
  }
  return static_cast<double>(kLoops) * 12 * ops / (cpu_seconds() - start) / 1e9;
}

#define STEP(V, code, reg) \
  [](V& sum) __attribute__((always_inline)) { asm volatile(code : "+" reg(sum) : : "xmm12", "xmm13"); }
__attribute__((target("avx2,fma"))) double avx2_peak(Core core) {
  if (core == Core::f32) return rate<__m256>(16, STEP(__m256, "vfmadd231ps %%ymm12, %%ymm13, %0", "x"));
  if (core == Core::s16)
    return rate<__m256i>(32, STEP(__m256i, "vpmaddwd %%ymm12, %%ymm12, %%ymm13; vpaddd %%ymm13, %0, %0", "x"));
  return rate<__m256i>(64, STEP(__m256i, "vpmaddubsw %%ymm12, %%ymm12, %%ymm13; vpaddw %%ymm13, %0, %0", "x"));
}
__attribute__((target("avx512f"))) double avx512_peak(Core core) {
  if (core == Core::f32) return rate<__m512>(32, STEP(__m512, "vfmadd231ps %%zmm12, %%zmm13, %0", "v"));
  return rate<__m512i>(core == Core::s16 ? 64 : 128,  // s16 takes two dots
                       STEP(__m512i, "vpdpbusd %%zmm12, %%zmm13, %0", "v"));
}
#undef STEP

double peak(Isa isa, Core core) {
  double best = 0;
  for (int i = 0; i < 5; ++i)
    best = std::max(best, isa >= Isa::avx512 ? avx512_peak(core) : isa == Isa::avx2 ? avx2_peak(core) : 0);
  return best;
}

__attribute__((target("avx2"))) void read_all(const std::byte* p, int64_t bytes) {
  __m256i s[4] = {};
  for (int64_t i = 0; i + 128 <= bytes; i += 128)
    for (int j = 0; j < 4; ++j)
      s[j] = _mm256_xor_si256(s[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i + 32 * j)));
  for (auto& v : s) asm volatile("" ::"x"(v));
}

PackedFormat format_named(const std::string& name) {
  for (const PackedFormat& f : testing::all_formats())
    if (name_of(f) == name) return f;
  throw CLI::ValidationError("--formats", "unknown format " + name);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"rates of the matrix kernels"};
  std::string isa_name = std::string(name_of(available_isas().back()));
  int threads = 2;
  std::vector<std::string> formats = {"q4_1", "q8_0", "q5_0", "q4_k", "q6_k", "affine4_g64_bf16", "bf16"};
  std::vector<std::string> cores = {"s16", "s8", "f32"};
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 64, 512};
  int64_t N = 1536, K = 1536, megabytes = 96;
  app.add_option("--isa", isa_name);
  app.add_flag("--best", g_best, "the least of the repeats, not their median");
  app.add_option("--threads", threads);
  app.add_option("--formats", formats)->delimiter(',');
  app.add_option("--cores", cores)->delimiter(',');
  app.add_option("--rows", rows)->delimiter(',');
  app.add_option("-N", N, "rows of a matrix");
  app.add_option("-K", K, "columns of a matrix");
  app.add_option("--mb", megabytes, "size of the set of matrices that few rows stream");
  CLI11_PARSE(app, argc, argv);

  const Isa isa = isa_named(isa_name);
  Team team(threads);
  const double T = threads;
  for (const std::string& core_name : cores) {
    const Core core = core_name == "f32" ? Core::f32 : core_name == "s16" ? Core::s16 : Core::s8;
    fmt::print("{} {}: peak {:.1f} Gop/s a thread\n", isa_name, core_name, peak(isa, core));
  }
  fmt::print("{:<18} {:>4} {:>5} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "format", "core", "M", "us", "GB/s", "of read",
             "Gop/s", "of peak");
  for (const std::string& name : formats) {
    const PackedFormat format = format_named(name);
    const Matrix one = Matrix::pack(testing::random_weights(format, N, K, 1).view(), &team);
    const int64_t bytes = static_cast<int64_t>(one.bytes().size());
    const int64_t copies = std::max<int64_t>(1, megabytes * 1000000 / bytes);
    std::vector<Matrix> many;
    std::vector<testing::Weights> files;
    const testing::Weights file = testing::random_weights(format, N, K, 2);
    WeightArena arena;
    for (int64_t i = 0; i < copies; ++i) {
      const WeightArena::Piece piece = arena.take(bytes);
      Matrix::pack_into(file.view(), piece.bytes, &team);
      many.push_back(Matrix::view(piece.bytes, piece.owner));
    }
    const double read = static_cast<double>(copies * bytes) /
                        seconds(team, 5,
                                [&](int member) {
                                  for (const Matrix& m : many)
                                    read_all(m.bytes().data() + bytes / threads * member, bytes / threads);
                                }) /
                        1e9;
    fmt::print("{}: plain read {:.1f} GB/s on {} threads\n", name, read, threads);
    for (const std::string& core_name : cores) {
      const Core core = core_name == "f32" ? Core::f32 : core_name == "s16" ? Core::s16 : Core::s8;
      if (!one.supports(core)) continue;
      const double limit = peak(isa, core) * T;
      for (const int64_t M : rows) {
        const std::vector<float> x = testing::random_rows(M, K, 3);
        std::vector<float> y(static_cast<size_t>(M * N));
        testing::Buffer act(act_row_bytes(core, K, isa) * M);
        if (core != Core::f32)
          quantize_rows({.core = core, .K = K, .x = x.data(), .ldx = K, .act = act.data(), .isa = isa}, 0, M);
        std::vector<testing::Buffer> scratch;
        for (int i = 0; i < threads; ++i) scratch.emplace_back(linear_scratch_bytes(M, K));
        const int64_t matrices = M <= 16 ? copies : 1;
        const double time = seconds(team, M <= 16 ? 7 : 5, [&](int member) {
          for (int64_t i = 0; i < matrices; ++i)
            linear({.w = &many[static_cast<size_t>(i)],
                    .core = core,
                    .M = M,
                    .x = x.data(),
                    .ldx = K,
                    .act = act.data(),
                    .y = y.data(),
                    .ldy = N,
                    .scratch = scratch[static_cast<size_t>(member)].data(),
                    .isa = isa},
                   member, threads);
        });
        const double rate = static_cast<double>(matrices * bytes) / time / 1e9;
        const double ops = 2.0 * static_cast<double>(matrices * N * K * M) / time / 1e9;
        fmt::print("{:<18} {:>4} {:>5} {:>10.1f} {:>8.2f} {:>7.0f}% {:>8.1f} {:>7.0f}%\n", name, core_name, M,
                   time * 1e6 / static_cast<double>(matrices), rate, 100 * rate / read, ops,
                   limit > 0 ? 100 * ops / limit : 0);
      }
    }
  }
}
