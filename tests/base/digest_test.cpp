#include "base/digest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace hearth {
namespace {

// FIPS 180-4 examples.
constexpr std::string_view kTwoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

TEST(Digest, equals_the_standards_examples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(kTwoBlocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Digest sha1(Digest::Kind::sha1);
  sha1.add("abc");
  EXPECT_EQ(sha1.hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Digest, pieces_give_what_the_whole_gives_and_hex_may_be_asked_early) {
  for (size_t cut = 0; cut <= kTwoBlocks.size(); ++cut) {
    Digest digest(Digest::Kind::sha256);
    digest.add(kTwoBlocks.substr(0, cut));
    EXPECT_EQ(digest.hex(), sha256_hex(kTwoBlocks.substr(0, cut)));
    digest.add(kTwoBlocks.substr(cut));
    EXPECT_EQ(digest.hex(), sha256_hex(kTwoBlocks));
  }
}

TEST(Digest, reads_files_longer_than_a_piece) {
  const auto path = std::filesystem::temp_directory_path() / ("hearth-digest-" + std::to_string(::getpid()));
  const std::string text((3u << 20) + 17, 'x');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(sha256_file(path), sha256_hex(text));
  std::filesystem::remove(path);
}

TEST(Digest, names_the_file_that_cannot_be_read) {
  try {
    sha256_file("/nonexistent/file");
    ADD_FAILURE() << "an absent file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/file"), std::string::npos);
  }
  try {
    sha256_file("/");
    ADD_FAILURE() << "a folder was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
  }
}

}  // namespace
}  // namespace hearth
