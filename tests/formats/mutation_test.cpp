// R-01, R-03: 100,000 mutated files of each format under sanitizers (fewer without): a value or a typed error, within
// 1 s of processor time, the largest allocation and the peak within their bounds. Deterministic; a failure prints its
// number.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "support/allocation_hook.h"
#include "formats/mutators.h"
#include "formats/parsers.h"

namespace hearth {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kFiles = 100'000;
#else
constexpr int kFiles = 20'000;
#endif

struct Tally {
  int accepted = 0, refused = 0;
};

void check_one(const std::string& text, double (*read)(std::string_view), int number, Tally& tally) {
  const std::clock_t start = std::clock();  // CPU time: what else the machine does is no fault of the reader
  test::Allocations seen;
  std::string problem;
  {
    const test::AllocationWatch watch;
    try {
      read(text);
      ++tally.accepted;
    } catch (const Error& e) {
      ++tally.refused;
      const bool typed = e.kind() == ErrorKind::corrupt_file || e.kind() == ErrorKind::invalid_argument;
      const std::string_view what = e.what();
      if (!typed || !(what.starts_with("f:") || what.starts_with("f["))) problem = e.what();
    } catch (const std::exception& e) {
      problem = e.what();
    }
    seen = watch.so_far();
  }
  const std::clock_t elapsed = std::clock() - start;
  ASSERT_EQ(problem, "") << "mutation " << number;
  ASSERT_LE(seen.largest, text.size() + (1u << 20)) << "mutation " << number;
  ASSERT_LE(seen.peak, (64u << 20) + 2 * text.size()) << "mutation " << number;
  ASSERT_LT(elapsed, CLOCKS_PER_SEC) << "mutation " << number;
}

// One to four mutations each; `mutate` changes the text in its format's terms.
template <class Mutate>
void check_all(const std::vector<std::string>& seeds, double (*read)(std::string_view), const Mutate& mutate) {
  Tally tally;
  for (const std::string& seed : seeds) EXPECT_NO_THROW(read(seed));
  for (int number = 0; number < kFiles && !testing::Test::HasFatalFailure(); ++number) {
    test::Mutator mutator(static_cast<uint64_t>(number));
    std::string text = seeds[mutator.below(seeds.size())];
    for (size_t n = 1 + mutator.below(4); n > 0; --n) mutate(mutator, text);
    check_one(text, read, number, tally);
  }
  // Mutations that never get past the first checks, or never harm, would test nothing.
  EXPECT_GT(tally.accepted, kFiles / 200);
  EXPECT_GT(tally.refused, kFiles / 3);
}

TEST(Mutation, gguf_R01) {
  const test::GgufBytes sample = test::sample_gguf();
  check_all({sample.text}, test::read_gguf, [&](test::Mutator& m, std::string& text) {
    if (m.below(4) > 0) m.gguf(text, sample.fields);
    else m.bytes(text);
  });
}

// The header's length follows the header, most of the time.
TEST(Mutation, safetensors_R01) {
  const std::vector<std::string> headers = {
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"U32","shape":[4],"data_offsets":[24,40]}})",
      R"({"x":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"y":{"dtype":"F8_E4M3","shape":[1,1,38],"data_offsets":[2,40]}})"};
  std::vector<std::string> seeds;
  for (const std::string& header : headers) seeds.push_back(test::safetensors(header, 40));
  check_all(seeds, test::read_safetensors, [&](test::Mutator& m, std::string& text) {
    if (m.below(5) == 0 || text.size() < 60) return m.bytes(text);
    const std::string data = text.substr(text.size() - 40);
    std::string header = text.substr(8, text.size() - 48);
    m.json(header);
    text.clear();
    test::put<uint64_t>(text, m.below(20) == 0 ? m.edge() : header.size());
    text += header + data;
  });
}

TEST(Mutation, index_R01) {
  check_all(
      {R"({"metadata":{"total_size":8},"weight_map":{"a":"x.safetensors","b":"y.safetensors","c":"x.safetensors"}})"},
      test::read_index, [](test::Mutator& m, std::string& text) {
        if (m.below(4) > 0) m.json(text);
        else m.bytes(text);
      });
}

// The header's length follows the header, most of the time.
TEST(Mutation, adapters_R01) {
  const std::string native = R"({"model.layers.0.q_proj.lora_a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                             R"("model.layers.0.q_proj.lora_b":{"dtype":"F32","shape":[1,3],"data_offsets":[8,20]}})";
  const std::string peft =
      R"({"base_model.model.model.layers.0.o_proj.lora_A.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("base_model.model.model.layers.0.o_proj.lora_B.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[12,20]}})";
  const std::vector<std::string> configs = {
      R"({"fine_tune_type":"lora","lora_parameters":{"rank":1,"scale":2.0,"dropout":0.0}})",
      R"({"peft_type":"LORA","r":2,"lora_alpha":4,"bias":"none","use_rslora":true,"rank_pattern":{"o_proj":2}})"};
  std::vector<std::string> seeds;
  for (const std::string& header : {native, peft})
    for (const std::string& config : configs) seeds.push_back(config + '\0' + test::safetensors(header, 20));
  check_all(seeds, test::read_adapter, [&](test::Mutator& m, std::string& text) {
    const size_t end = text.find('\0');
    if (m.below(5) == 0 || end == std::string::npos || text.size() < end + 40) return m.bytes(text);
    std::string config = text.substr(0, end), header = text.substr(end + 9, text.size() - end - 29);
    const std::string data = text.substr(text.size() - 20);
    m.json(m.below(2) ? config : header);
    text = config + '\0';
    test::put<uint64_t>(text, header.size());
    text += header + data;
  });
}

TEST(Mutation, config_and_quantization_tables_R01) {
  check_all(
      {R"({"model_type":"llama","quantization":{"bits":4,"group_size":64,"mode":"affine","a.b":{"bits":8},"c":false}})",
       R"({"text_config":{"quantization_config":{"bits":2,"group_size":32,"x":true,"y":{"group_size":128,"bits":3}}}})",
       R"([{"layer_idx":0,"bits":8,"group_size":64},{"layer_idx":3,"bits":4,"group_size":64}])"},
      test::read_config, [](test::Mutator& m, std::string& text) {
        if (m.below(4) > 0) m.json(text);
        else m.bytes(text);
      });
}

}  // namespace
}  // namespace hearth
