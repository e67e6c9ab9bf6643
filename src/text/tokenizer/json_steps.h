// Parts of tokenizer.json: the normalizer, pre_tokenizer, decoder and post_processor objects, and added tokens.
#pragma once
#include <cstdint>
#include <string>
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

// An added token but for its id: {"content": ..., "special": ..., "lstrip": ..., ...}.
AddedToken read_added(const json::Value& value, const std::string& what);
int32_t id_in_range(int64_t id, const std::string& what);

}  // namespace hearth::text
