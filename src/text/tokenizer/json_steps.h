// The normalizer, pre_tokenizer, decoder and post_processor objects of tokenizer.json.
#pragma once
#include <vector>

#include "base/json.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {

// Each appends the steps of an object to the tables; nested sequences are flattened. A type that is not known is
// Error{invalid_argument} with the list of those that are; wrong fields are Error{corrupt_file}.
void read_normalizer(const json::Value& value, TokenizerTables& tables);
void read_pre_tokenizer(const json::Value& value, TokenizerTables& tables);
void read_decoder(const json::Value& value, TokenizerTables& tables);
void read_post_processor(const json::Value& value, const VocabularyBuilder& vocabulary, TokenizerTables& tables);

}  // namespace hearth::text
