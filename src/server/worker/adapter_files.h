// An adapter's files as a worker gets them: descriptors, opened by the front. Read with pread alone, so a file that
// shrinks meanwhile is an error and no signal.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "formats/adapter.h"
#include "server/wire.h"

namespace hearth::server {

struct ReadAdapter {
  formats::Adapter adapter;
  std::string digest;    // SHA-256 of its files
  std::string mismatch;  // why it was not trained on this model; empty: nothing says so
};

// Of an adapter_mount frame: everything is read and checked. Throws as formats::parse_adapter, with the files' own
// names and no path; Error{out_of_memory} for a weight file that bytes_kept, the memory for adapters, cannot hold,
// Error{invalid_argument} for a mismatch without `force`, Error{corrupt_file} where the digest is not the one that the
// frame names.
ReadAdapter read_adapter(const Frame& frame, std::span<const formats::AdapterLinear> base, int64_t bytes_kept);

// What the front shows of it.
json::Object facts_of(const ReadAdapter& read);

// Of an adapter_describe frame: the same from the config alone, as far as that goes.
json::Object describe_adapter(const Frame& frame);

}  // namespace hearth::server
