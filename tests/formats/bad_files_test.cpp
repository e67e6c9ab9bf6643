// R-02: every known bug class of file readers as a fixed file, each with its exact error (reliability.md 4.1).
#include <gtest/gtest.h>

#include "formats/builders.h"
#include "formats/config.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

namespace hearth::formats {
namespace {

using test::GgufBytes;
using test::outcome;
using test::safetensors;

struct BadFile {
  const char* name;
  std::string bytes;
  std::string error;
};

GgufBytes one_tensor(std::vector<uint64_t> dims, uint32_t type, uint64_t offset, size_t data_bytes) {
  GgufBytes file(1, 0);
  file.tensor("t", std::move(dims), type, offset).data(data_bytes);
  return file;
}

GgufBytes two_tensors(const char* first, const char* second, uint64_t second_offset, size_t data_bytes) {
  GgufBytes file(2, 0);
  file.tensor(first, {16}, 0, 0).tensor(second, {16}, 0, second_offset).data(data_bytes);
  return file;
}

template <class Fill>
std::string one_key(const Fill& fill) {
  GgufBytes file(0, 1);
  fill(file);
  return file.text;
}

std::vector<BadFile> bad_gguf_files() {
  const std::string corrupt = "corrupt_file: f: ", invalid = "invalid_argument: f: ";
  const uint64_t huge = uint64_t{1} << 63;
  std::vector<BadFile> files;
  const auto add = [&](const char* name, std::string bytes, std::string error) {
    files.push_back({name, std::move(bytes), std::move(error)});
  };
  add("empty", "", corrupt + "magic at byte 0 needs 4 bytes, 0 are left");
  add("zip polyglot", std::string("PK\x03\x04", 4) + test::sample_gguf().text,
      corrupt + R"(not a GGUF file: it starts with "PK\x03\x04")");
  add("old magic", "ggjt" + std::string(40, '\0'), corrupt + R"(not a GGUF file: it starts with "ggjt")");
  add("version 1", GgufBytes(0, 0, 1).text, invalid + "GGUF version 1; supported are 2 and 3");
  add("version 4", GgufBytes(0, 0, 4).text, invalid + "GGUF version 4; supported are 2 and 3");
  add("big-endian", GgufBytes(0, 0, 0x03000000).text,
      invalid + "GGUF version 0x3000000: big-endian files are not supported");
  add("2^63 tensors", GgufBytes(huge, 0).text, corrupt + "9223372036854775808 tensors, the limit is 1000000");
  add("2^64 - 1 keys", GgufBytes(0, UINT64_MAX).text, corrupt + "18446744073709551615 keys, the limit is 65536");
  add("keys beyond the file", GgufBytes(0, 60'000).text,
      corrupt + "60000 keys need 840000 bytes at least, 0 are left at byte 24");
  add("tensors beyond the file", GgufBytes(900'000, 0).text,
      corrupt + "900000 tensors need 29700000 bytes at least, 0 are left at byte 24");

  add("key length wraps", one_key([&](GgufBytes& f) { f.number<uint64_t>(UINT64_MAX).data(32, 1); }),
      corrupt + "key at byte 24 has 18446744073709551615 bytes, the limit is 67108864");
  add("key outside", one_key([&](GgufBytes& f) { f.number<uint64_t>(40).data(32, 1); }),
      corrupt + "key at byte 32 needs 40 bytes, 32 are left");
  add("empty key", one_key([](GgufBytes& f) { f.scalar<uint64_t>("", 10, 1); }), corrupt + "key at byte 24 is empty");
  add("value type 13", one_key([](GgufBytes& f) { f.scalar<uint32_t>("a", 13, 1); }),
      corrupt + "a at byte 33: type 13 is unknown");
  add("value type 2^32 - 1", one_key([](GgufBytes& f) { f.scalar<uint32_t>("a", UINT32_MAX, 1); }),
      corrupt + "a at byte 33: type 4294967295 is unknown");
  add("boolean 2", one_key([](GgufBytes& f) { f.scalar<uint8_t>("a", 7, 2).data(8, 1); }),
      corrupt + "a: a boolean is 2");
  add("value cut", one_key([](GgufBytes& f) { f.scalar<uint32_t>("a", 10, 1); }),
      corrupt + "value at byte 37 needs 8 bytes, 4 are left");
  add("string value outside", one_key([](GgufBytes& f) { f.key("a", 8).number<uint64_t>(9).data(8, 1); }),
      corrupt + "a at byte 45 needs 9 bytes, 8 are left");
  add("string length cut", one_key([](GgufBytes& f) { f.key("a", 8).number<uint32_t>(0); }),
      corrupt + "length of a at byte 37 needs 8 bytes, 4 are left");
  add("string of 2^63 bytes", one_key([&](GgufBytes& f) { f.key("a", 8).number<uint64_t>(huge); }),
      corrupt + "a at byte 37 has 9223372036854775808 bytes, the limit is 67108864");

  add("array of arrays", one_key([](GgufBytes& f) { f.array("a", 9, 1).data(32, 1); }),
      corrupt + "a: an array of arrays is not supported");
  add("array of unknown type", one_key([](GgufBytes& f) { f.array("a", 77, 1).data(8, 1); }),
      corrupt + "a at byte 37: element type 77 is unknown");
  add("array of 2^63", one_key([&](GgufBytes& f) { f.array("a", 4, huge); }),
      corrupt + "a has 9223372036854775808 elements, the limit is 16000000");
  add("array outside", one_key([](GgufBytes& f) { f.array("a", 4, 3).data(8, 1); }),
      corrupt + "value at byte 49 needs 12 bytes, 8 are left");
  add("array size would wrap in 32 bits", one_key([](GgufBytes& f) { f.array("a", 10, 16'000'000).data(64, 1); }),
      corrupt + "value at byte 49 needs 128000000 bytes, 64 are left");
  add("strings outside", one_key([](GgufBytes& f) { f.array("a", 8, 1'000'000).data(64, 1); }),
      corrupt + "a has 1000000 strings, 64 bytes are left at byte 49");
  add("string of an array outside", one_key([](GgufBytes& f) { f.array("a", 8, 2).string("x").number<uint64_t>(7); }),
      corrupt + "a[1] at byte 66 needs 7 bytes, 0 are left");
  add("booleans of 0x3c", one_key([](GgufBytes& f) { f.array("a", 7, 3).data(3, 1); }), corrupt + "a: a boolean is 60");
  {
    GgufBytes file(0, 2);
    file.scalar<uint32_t>("a", 4, 1).scalar<uint32_t>("a", 4, 1);
    add("duplicate key", file.text, corrupt + "key a occurs twice");
  }

  for (const uint32_t alignment : {0u, 4u, 33u, 48u})
    add("bad alignment", one_key([&](GgufBytes& f) { f.scalar<uint32_t>("general.alignment", 4, alignment); }),
        corrupt + fmt::format("general.alignment is {}, it must be a power of two >= 8", alignment));
  add("alignment is a string", one_key([](GgufBytes& f) { f.key("general.alignment", 8).string("32"); }),
      corrupt + "general.alignment: expected a u32, found string");

  add(
      "empty tensor name",
      [] {
        GgufBytes file(1, 0);
        file.tensor("", {8}, 0, 0).data(32);
        return file.text;
      }(),
      corrupt + "tensor name at byte 24 is empty");
  add("rank 0", one_tensor({}, 0, 0, 32).text, corrupt + "tensor t has 0 dimensions, 1 to 4 are allowed");
  add("rank 5", one_tensor({1, 1, 1, 1, 1}, 0, 0, 32).text, corrupt + "tensor t has 5 dimensions, 1 to 4 are allowed");
  add("zero dimension", one_tensor({8, 0}, 0, 0, 32).text, corrupt + "tensor t: dimension 1 is 0");
  add("dimension 2^63", one_tensor({huge}, 0, 0, 32).text,
      corrupt + "tensor t: dimension 0 is 9223372036854775808, its size wraps");
  add("rows wrap to 0", one_tensor({8, uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0, 32).text,
      corrupt + "tensor t: dimension 2 is 4294967296, its size wraps");
  add("bytes wrap to 32", one_tensor({(uint64_t{1} << 62) + 8}, 0, 0, 32).text,
      corrupt + "tensor t: 1 rows of 4611686018427387912 f32 values do not fit into a file of 96 bytes");
  add("CVE-2024-23496: blocks wrap", one_tensor({uint64_t{1} << 61, 8}, 8, 0, 32).text,
      corrupt + "tensor t: 8 rows of 2305843009213693952 q8_0 values do not fit into a file of 128 bytes");
  add("K no multiple of the block", one_tensor({640}, 12, 0, 360).text,
      corrupt + "tensor t: K = 640 is no multiple of 256, the block of q4_k");
  const std::string supported =
      "; supported are F32 F16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS BF16 MXFP4";
  add("unsupported block type", one_tensor({256}, 16, 0, 96).text,
      invalid + "tensor t has type 16 (IQ2_XXS)" + supported);
  add("removed block type", one_tensor({256}, 4, 0, 96).text, invalid + "tensor t has type 4 (unknown)" + supported);
  add("block type 2^31", one_tensor({256}, 1u << 31, 0, 96).text,
      invalid + "tensor t has type 2147483648 (unknown)" + supported);
  add("misaligned offset", one_tensor({8}, 0, 8, 64).text,
      corrupt + "tensor t: offset 8 is no multiple of the alignment 32");
  add("offset outside", one_tensor({8}, 0, 64, 64).text,
      corrupt + "tensor t: 32 bytes at offset 64 of the data at byte 64 end outside the file of 128 bytes");
  add("offset wraps", one_tensor({8}, 0, UINT64_MAX - 31, 64).text,
      corrupt +
          "tensor t: 32 bytes at offset 18446744073709551584 of the data at byte 64 end outside the file of 128 bytes");
  add("data cut", one_tensor({16}, 0, 0, 63).text,
      corrupt + "tensor t: 64 bytes at offset 0 of the data at byte 64 end outside the file of 127 bytes");
  add(
      "no data section",
      [] {
        GgufBytes file(1, 0);
        file.tensor("t", {2}, 0, 0);
        return file.text;
      }(),
      corrupt + "tensor t: 8 bytes at offset 0 of the data at byte 64 end outside the file of 57 bytes");
  add("overlap", two_tensors("a", "b", 32, 128).text,
      corrupt + "tensors a and b overlap: 64 bytes at offset 0, next at 32");
  add("same place", two_tensors("a", "b", 0, 128).text,
      corrupt + "tensors a and b overlap: 64 bytes at offset 0, next at 0");
  add("duplicate tensor", two_tensors("a", "a", 64, 128).text, corrupt + "tensor a occurs twice");
  add("unprintable name", two_tensors("a\n\x1b[2J", "a\n\x1b[2J", 64, 128).text,
      corrupt + R"(tensor a\x0a\x1b[2J occurs twice)");
  add("a part of a split file", one_key([](GgufBytes& f) { f.scalar<uint16_t>("split.count", 2, 3); }),
      invalid + "one of 3 parts, the others are needed");
  return files;
}

std::string entry(const char* name, const char* dtype, const char* shape, const char* offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}
std::string object(const std::string& members) { return "{" + members + "}"; }

std::vector<BadFile> bad_safetensors_files() {
  const std::string corrupt = "corrupt_file: f: ", invalid = "invalid_argument: f: ";
  std::vector<BadFile> files;
  const auto add = [&](const char* name, std::string bytes, std::string error) {
    files.push_back({name, std::move(bytes), std::move(error)});
  };
  const auto header = [&](const char* name, const std::string& text, size_t data, std::string error) {
    add(name, safetensors(text, data), std::move(error));
  };
  const auto with_length = [](uint64_t length, const std::string& rest) {
    std::string bytes;
    test::put(bytes, length);
    return bytes + rest;
  };
  add("empty", "", corrupt + "header length at byte 0 needs 8 bytes, 0 are left");
  add("seven bytes", std::string(7, '\0'), corrupt + "header length at byte 0 needs 8 bytes, 7 are left");
  add("header of 100 MB + 1", with_length(100'000'001, "{}"),
      corrupt + "header of 100000001 bytes, the limit is 100000000");
  add("header of 2^63", with_length(uint64_t{1} << 63, "{}"),
      corrupt + "header of 9223372036854775808 bytes, the limit is 100000000");
  add("header longer than the file", with_length(3, "{}"), corrupt + "header at byte 8 needs 3 bytes, 2 are left");
  add("zip polyglot", std::string("PK\x03\x04\x14\0\0\0", 8) + "{}",
      corrupt + "header of 85966670672 bytes, the limit is 100000000");
  add("empty header", with_length(0, ""), corrupt + R"(header starts with "", not with "{")");
  header("no object", "[]", 0, corrupt + R"(header starts with "[", not with "{")");
  header("space before the object", " {}", 0, corrupt + R"(header starts with " ", not with "{")");
  header("two documents", "{}{}", 0, corrupt + "extra data at byte 2");
  header("cut object", R"({"a":)", 0, corrupt + "incomplete JSON at byte 5");
  header("invalid UTF-8", "{\"\xff\":1}", 0, corrupt + "syntax error at byte 2");
  header("deep nesting", "{\"a\":" + std::string(1000, '['), 0, corrupt + "a: expected an object, found an array");
  header("nested entry", R"({"a":{"dtype":{"dtype":{}}}})", 0, corrupt + "a.dtype: unexpected an object");
  header("entry is a number", object(R"("a":1)"), 0, corrupt + "a: expected an object, found a number");
  header("entry is a string", object(R"("a":"b")"), 0, corrupt + "a: expected an object, found a string");
  header("entry is an array", object(R"("a":[])"), 0, corrupt + "a: expected an object, found an array");
  header("dtype absent", object(R"("a":{"shape":[1],"data_offsets":[0,1]})"), 1, corrupt + "tensor a: dtype is absent");
  header("shape absent", object(R"("a":{"dtype":"U8","data_offsets":[0,1]})"), 1,
         corrupt + "tensor a: shape is absent");
  header("offsets absent", object(R"("a":{"dtype":"U8","shape":[1]})"), 1,
         corrupt + "tensor a: data_offsets is absent");
  header("unknown field", object(R"("a":{"dtype":"U8","x":1})"), 1, corrupt + "tensor a: unknown field x");
  header("field twice", object(R"("a":{"dtype":"U8","dtype":"U8"})"), 1, corrupt + "tensor a: dtype occurs twice");
  header("dtype is a number", object(R"("a":{"dtype":8})"), 1, corrupt + "a.dtype: unexpected a number");
  header("dtype is an array", object(R"("a":{"dtype":["U8"]})"), 1, corrupt + "a.dtype: unexpected an array");
  header("shape is a string", object(R"("a":{"shape":"1"})"), 1, corrupt + "a.shape: unexpected a string");
  header("shape of strings", object(R"("a":{"shape":["1"]})"), 1, corrupt + "a.shape: unexpected a string");
  header("shape of arrays", object(R"("a":{"shape":[[1]]})"), 1, corrupt + "a.shape: unexpected an array");
  header("unknown dtype", object(entry("a", "F9", "[1]", "[0,1]")), 1,
         invalid + "tensor a has dtype F9; supported are F64 F32 F16 BF16 I64 I32 U32 I8 U8 BOOL");
  const std::string no_number = "holds something else than whole numbers below 2^63";
  header("negative dimension", object(entry("a", "U8", "[-1]", "[0,1]")), 1, corrupt + "tensor a: shape " + no_number);
  header("fractional dimension", object(entry("a", "U8", "[1.5]", "[0,1]")), 1,
         corrupt + "tensor a: shape " + no_number);
  header("dimension 2^63", object(entry("a", "U8", "[9223372036854775808]", "[0,1]")), 1,
         corrupt + "tensor a: shape " + no_number);
  header("offset null", object(entry("a", "U8", "[1]", "[null,1]")), 1,
         corrupt + "tensor a: data_offsets " + no_number);
  header("zero dimension", object(entry("a", "U8", "[4,0]", "[0,0]")), 0, corrupt + "tensor a: dimension 1 is 0");
  header("nine dimensions", object(entry("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]")), 1,
         corrupt + "tensor a has more than 8 dimensions");
  header("size wraps to 0", object(entry("a", "F32", "[4294967296,4294967296]", "[0,0]")), 0,
         corrupt + "tensor a: the size of shape [4294967296, 4294967296] wraps");
  header("size wraps to 4", object(entry("a", "F32", "[4611686018427387905]", "[0,4]")), 4,
         corrupt + "tensor a: the size of shape [4611686018427387905] wraps");
  header("size differs", object(entry("a", "F32", "[2]", "[0,4]")), 4,
         corrupt + "tensor a: F32 [2] needs 8 bytes, data_offsets hold 4");
  header("one offset", object(entry("a", "U8", "[1]", "[0]")), 1,
         corrupt + "tensor a: data_offsets has 1 numbers, 2 are needed");
  header("three offsets", object(entry("a", "U8", "[1]", "[0,1,2]")), 1,
         corrupt + "tensor a: data_offsets has 3 numbers, 2 are needed");
  header("offsets descend", object(entry("a", "U8", "[1]", "[1,0]")), 1,
         corrupt + "tensor a: data_offsets [1, 0] lie outside the 1 bytes of data");
  header("offsets outside", object(entry("a", "U8", "[2]", "[0,2]")), 1,
         corrupt + "tensor a: data_offsets [0, 2] lie outside the 1 bytes of data");
  header("half a byte", object(entry("a", "F4", "[3]", "[0,1]")), 1,
         corrupt + "tensor a: F4 [3] needs 1 bytes, data_offsets hold 1");
  const std::string a = entry("a", "U8", "[4]", "[0,4]");
  header("overlap", object(a + "," + entry("b", "U8", "[4]", "[2,6]")), 6,
         corrupt + "tensor b starts at byte 2 of the data, the one before ends at 4");
  header("hole", object(a + "," + entry("b", "U8", "[4]", "[6,10]")), 10,
         corrupt + "tensor b starts at byte 6 of the data, the one before ends at 4");
  header("hole at the start", object(entry("a", "U8", "[4]", "[1,5]")), 5,
         corrupt + "tensor a starts at byte 1 of the data, the one before ends at 0");
  header("data behind the last", object(a), 5, corrupt + "the tensors end at byte 4 of 5 bytes of data");
  header("data without tensors", "{}", 5, corrupt + "the tensors end at byte 0 of 5 bytes of data");
  header("duplicate tensor", object(a + "," + entry("a", "U8", "[4]", "[4,8]")), 8, corrupt + "tensor a occurs twice");
  header("duplicate tensor behind an escape", object(a + "," + entry("\\u0061", "U8", "[4]", "[4,8]")), 8,
         corrupt + "tensor a occurs twice");
  header("metadata twice", object(R"("__metadata__":{},"__metadata__":{})"), 0, corrupt + "__metadata__ occurs twice");
  header("metadata null and again", object(R"("__metadata__":null,"__metadata__":{})"), 0,
         corrupt + "__metadata__ occurs twice");
  header("metadata is a number", object(R"("__metadata__":1)"), 0,
         corrupt + "__metadata__: expected an object, found a number");
  header("metadata key twice", object(R"("__metadata__":{"k":"1","k":"2"})"), 0,
         corrupt + "__metadata__ key k occurs twice");
  header("metadata of numbers", object(R"("__metadata__":{"k":1})"), 0,
         corrupt + "__metadata__.k: unexpected a number");
  header("metadata of objects", object(R"("__metadata__":{"k":{}})"), 0,
         corrupt + "__metadata__.k: unexpected an object");
  return files;
}

std::vector<BadFile> bad_index_files() {
  const std::string corrupt = "corrupt_file: f: ";
  const auto map = [](const char* members) { return fmt::format(R"({{"weight_map":{{{}}}}})", members); };
  const auto escape = [&](const char* file) {
    return corrupt + fmt::format(R"(weight_map[a]: "{}" is no plain *.safetensors name)", file);
  };
  return {
      {"empty", "", corrupt + "incomplete JSON at byte 0"},
      {"array", "[]", corrupt + "expected an object, found an array"},
      {"string", "\"x\"", corrupt + "expected an object, found a string"},
      {"no map", R"({"metadata":{"weight_map":{"a":"a.safetensors"}}})", corrupt + "weight_map is absent"},
      {"map is an array", R"({"weight_map":["a"]})", corrupt + "weight_map: expected an object, found an array"},
      {"map is null", R"({"weight_map":null})", corrupt + "weight_map: expected an object, found null"},
      {"map is a string", R"({"weight_map":"a"})", corrupt + "weight_map: expected an object, found a string"},
      {"map twice", R"({"weight_map":{},"weight_map":{}})", corrupt + "weight_map occurs twice"},
      {"file is a number", map(R"("a":1)"), corrupt + "weight_map[a]: expected a file name, found a number"},
      {"file is an object", map(R"("a":{})"), corrupt + "weight_map[a]: expected a file name, found an object"},
      {"tensor twice", map(R"("a":"x.safetensors","a":"y.safetensors")"), corrupt + "weight_map names tensor a twice"},
      {"parent folder", map(R"("a":"../x.safetensors")"), escape("../x.safetensors")},
      {"absolute path", map(R"("a":"/etc/x.safetensors")"), escape("/etc/x.safetensors")},
      {"backslash", map(R"("a":"b\\x.safetensors")"), escape(R"(b\x.safetensors)")},
      {"NUL", map(R"("a":"x\u0000.safetensors")"), escape(R"(x\x00.safetensors)")},
      {"hidden", map(R"("a":".safetensors")"), escape(".safetensors")},
      {"pickle", map(R"("a":"pytorch_model.bin")"), escape("pytorch_model.bin")},
      {"too deep", R"({"x":)" + std::string(200, '['), corrupt + "values are more than 96 deep at byte 100"},
  };
}

void check(const std::vector<BadFile>& files, void (*parse)(const std::string&)) {
  for (const BadFile& file : files) EXPECT_EQ(outcome([&] { parse(file.bytes); }), file.error) << file.name;
}

void parse_gguf_text(const std::string& text) { GgufFile::parse(test::as_bytes(text), "f"); }
void parse_safetensors_text(const std::string& text) { parse_safetensors(test::as_bytes(text), "f"); }
void parse_index_text(const std::string& text) { parse_safetensors_index(text, "f"); }

TEST(BadFiles, gguf_R02) { check(bad_gguf_files(), parse_gguf_text); }
TEST(BadFiles, safetensors_R02) { check(bad_safetensors_files(), parse_safetensors_text); }
TEST(BadFiles, index_R02) { check(bad_index_files(), parse_index_text); }

TEST(BadFiles, at_least_sixty_R02) {
  EXPECT_GE(bad_gguf_files().size() + bad_safetensors_files().size() + bad_index_files().size(), 120u);
}

// R-01: a file cut anywhere is refused, except where the cut leaves a whole document.
TEST(BadFiles, truncation_at_every_byte_R01) {
  const std::string gguf = test::sample_gguf().text;
  ASSERT_EQ(outcome([&] { parse_gguf_text(gguf); }), "accepted");
  for (size_t n = 0; n < gguf.size(); ++n)
    EXPECT_NE(outcome([&] { parse_gguf_text(gguf.substr(0, n)); }), "accepted") << n;

  const std::string tensors =
      safetensors(object(R"("__metadata__":{"format":"pt"},)" + entry("a", "F32", "[2,3]", "[0,24]")), 24);
  ASSERT_EQ(outcome([&] { parse_safetensors_text(tensors); }), "accepted");
  for (size_t n = 0; n < tensors.size(); ++n)
    EXPECT_NE(outcome([&] { parse_safetensors_text(tensors.substr(0, n)); }), "accepted") << n;

  const std::string index = R"({"metadata":{"total_size":1},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})";
  ASSERT_EQ(outcome([&] { parse_index_text(index); }), "accepted");
  for (size_t n = 0; n < index.size(); ++n)
    EXPECT_NE(outcome([&] { parse_index_text(index.substr(0, n)); }), "accepted") << n;

  const std::string config = R"({"quantization":{"bits":4,"group_size":64,"a":{"bits":8}}})";
  for (size_t n = 0; n < config.size(); ++n)
    EXPECT_NE(outcome([&] { QuantTable::of(parse_config(config.substr(0, n), "f"), "f"); }), "accepted") << n;
}

}  // namespace
}  // namespace hearth::formats
