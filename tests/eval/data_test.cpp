// NumPy's legacy permutation, and the texts that evaluations read.
#include "eval/data.h"

#include <gtest/gtest.h>

#include "support/outcome.h"
#include "support/temp_dir.h"

namespace hearth::eval {
namespace {

using Order = std::vector<size_t>;

// numpy 2.4.6: numpy.random.RandomState(seed).permutation(n).tolist()
TEST(Permutation, equals_numpys) {
  EXPECT_EQ(permutation(0, 123), Order{});
  EXPECT_EQ(permutation(1, 123), Order{0});
  EXPECT_EQ(permutation(2, 123), (Order{1, 0}));
  EXPECT_EQ(permutation(7, 123), (Order{1, 3, 4, 0, 2, 5, 6}));
  EXPECT_EQ(permutation(8, 123), (Order{0, 1, 3, 7, 4, 2, 5, 6}));
  EXPECT_EQ(permutation(9, 123), (Order{7, 0, 5, 6, 3, 1, 8, 4, 2}));
  EXPECT_EQ(permutation(33, 123), (Order{8,  26, 5, 29, 21, 30, 13, 7,  23, 12, 11, 16, 4, 3,  27, 20, 18,
                                         14, 24, 9, 15, 31, 0,  1,  22, 25, 10, 19, 17, 6, 32, 28, 2}));
  EXPECT_EQ(permutation(5, 7), (Order{0, 3, 2, 1, 4}));
  const Order many = permutation(300, 123);
  EXPECT_EQ(Order(many.begin(), many.begin() + 12), (Order{262, 114, 165, 278, 293, 169, 11, 235, 240, 206, 194, 223}));
  EXPECT_EQ(Order(many.end() - 4, many.end()), (Order{83, 17, 230, 98}));
}

TEST(ReadDocuments, a_text_file_is_one_document_and_jsonl_one_a_line) {
  const test::TempDir dir;
  EXPECT_EQ(read_documents(dir.write("a.txt", "one\ntwo\n")), std::vector<std::string>{"one\ntwo\n"});
  EXPECT_EQ(read_documents(dir.write("a.jsonl", "{\"text\": \"one\"}\r\n\n  \n{\"id\": 3, \"text\": \"two\\n\"}")),
            (std::vector<std::string>{"one", "two\n"}));
}

TEST(ReadDocuments, names_the_line_of_a_bad_record) {
  const test::TempDir dir;
  const auto says = [&](const char* name, const std::string& bytes) {
    const auto path = dir.write(name, bytes);
    std::string text = test::outcome([&] { read_documents(path); });
    const std::string folder = dir.path().string() + "/";
    if (const size_t at = text.find(folder); at != std::string::npos) text.erase(at, folder.size());
    return text;
  };
  EXPECT_EQ(says("a.jsonl", "{\"text\": \"one\"}\n\n{\"txt\": \"two\"}\n"),
            "corrupt_file: a.jsonl:3: the record has no text");
  EXPECT_EQ(says("a.jsonl", "{\"text\": 5}\n"), "corrupt_file: a.jsonl:1: text: expected a string, found a number");
  EXPECT_EQ(says("a.txt", ""), "invalid_argument: a.txt: there is no text in it");
  EXPECT_EQ(says("a.jsonl", "\n\n"), "invalid_argument: a.jsonl: there is no text in it");
  EXPECT_EQ(test::outcome([&] { read_documents(dir.path() / "gone.txt"); }).substr(0, 10), "not_found:");
}

}  // namespace
}  // namespace hearth::eval
