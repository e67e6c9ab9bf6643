#include "formats/model_card.h"

#include <gtest/gtest.h>

namespace hearth::formats {
namespace {

TEST(ModelCard, the_front_matter_names_the_license) {
  EXPECT_EQ(license_of_card("---\nlicense: apache-2.0\n---\n# Model\n"), "apache-2.0");
  EXPECT_EQ(license_of_card("---\r\ntags:\r\n- x\r\nlicense: \"mit\"  # free\r\n---\r\n"), "mit");
  EXPECT_EQ(license_of_card("---\nlicense: other\nlicense_name: 'gemma'\n---"), "other (gemma)");
  EXPECT_EQ(license_of_card("---\nlicense: other\n---"), "other");
  EXPECT_EQ(license_of_card("---\nlicense: cc-by-4.0 # see below\n---"), "cc-by-4.0");
}

TEST(ModelCard, anything_else_names_none) {
  for (const char* card :
       {"", "# Model\nlicense: mit\n", "---\nlicense: mit\n", "---", "---\nmodel:\n  license: mit\n---",
        "---\nlicense:\n---", "---\nlicense_link: x\n---\nlicense: mit\n---"})
    EXPECT_EQ(license_of_card(card), "") << card;
}

}  // namespace
}  // namespace hearth::formats
