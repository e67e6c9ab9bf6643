// The wire between front and worker (DESIGN 2, spec server 2): frames over a stream socket, u32 length (little endian,
// of kind and body, at most 64 MiB), u8 kind, body as JSON. This table is all that the two say to each other. Frames
// that name files go down with a descriptor of each (SCM_RIGHTS): the worker opens none.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/descriptor.h"

namespace hearth::server {

// Every body is an object; but for load, loaded, progress and drain it has "id", the request it belongs to.
enum class FrameKind : uint8_t {
  // down
  load = 1,          // {}: read the model; answered by loaded or error (id 0)
  submit,            // a Generation (generation.h): answered by admitted ... finish for each answer, or by error
  cancel,            // {id}
  hold,              // {id}: its reader is slow; nothing more is made until release
  release,           // {id}
  embed,             // {id, inputs, instruction?, dimensions?}: reply {vectors, tokens}
  tokenize,          // {id, content | messages, ...}: reply {tokens, ...}
  detokenize,        // {id, tokens}: reply {content}
  render,            // {id, messages, tools, ...}: reply {prompt, token_count}
  adapter_mount,     // {id, name, files: [config, weights], repo, revision, force, default, digest?}: reply {adapter}
  adapter_unmount,   // {id, name}: reply, when the last request that uses it has ended
  adapter_describe,  // {id, name, files: [config], repo, revision}: reply {adapter}: what the config says
  stats,             // {id}: reply
  drain,             // {}: no new requests; the worker ends when the last one has
  // up
  loaded = 64,  // facts of the model: spec server 3.3, 3.4
  progress,     // {done, total}: bytes of weights
  taken,        // {id}: the worker has read the frame of a request: from here on it ends with the worker
  admitted,     // {id, answer, prompt, cached}
  text,         // {id, answer, text, logprobs?}
  reasoning,    // {id, answer, text}
  tool_begin,   // {id, answer, index, call, name}
  tool_args,    // {id, answer, index, text}
  tool_end,     // {id, answer, index}
  finish,       // {id, answer, reason, usage, timings}
  error,        // {id, kind, message, code?, param?}: the request has ended
  reply,        // {id, ...}
};

struct Frame {
  FrameKind kind{};
  json::Value body;
  std::vector<Descriptor> files{};  // as body.files names them
};

// submit, embed, tokenize, detokenize, render, adapter_*: what a worker answers with taken as soon as it has read it.
bool is_request(FrameKind kind);
Frame taken_frame(uint64_t id);

inline constexpr size_t kFrameBytesMax = size_t{64} << 20;
// A request may nest 96 deep, and some fields lie deeper in a frame than in the body that brought them.
inline constexpr int kFrameDepthMax = 96 + 16;
inline constexpr size_t kFrameFilesMax = 4;

// Appends the frame's bytes, without its files. Throws Error{invalid_argument} beyond kFrameBytesMax.
void append_frame(std::string& out, const Frame& frame);

// Takes a whole frame off the front of `bytes`, from *at on, which it moves; nullopt: more bytes are needed. Throws
// Error{corrupt_file} for a length of 0 or beyond the limit, an unknown kind, a body that is no JSON object.
std::optional<Frame> take_frame(std::string_view bytes, size_t& at);

// One end of the socket pair. One thread receives; any thread sends.
class Wire {
 public:
  enum class Files : uint8_t { refused, taken };        // that the other side sends
  explicit Wire(int fd, Files files = Files::refused);  // owned; a blocking stream socket
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Throws Error{io} when the other side is gone.
  void send(const Frame& frame);
  void send_bytes(std::string_view frames);  // frames made by append_frame: one write for many
  void send_files(std::string_view frame, std::span<const Descriptor> files);  // one frame, with the files it names

  // Waits for a frame; nullopt: the other side has closed. Throws as take_frame does, and Error{corrupt_file} for files
  // that no frame names, or too few.
  std::optional<Frame> receive();

  void shut_down();  // both ways: receive() returns, send() throws, here and on the other side

 private:
  void send_all(std::string_view frames);  // under sending_
  ssize_t receive_some(std::span<char> buffer);
  void hand_files(Frame& frame);

  int fd_;
  Files files_;
  std::mutex sending_;
  std::string received_;
  size_t at_ = 0;
  std::deque<Descriptor> received_files_;  // of frames that are not whole yet
};

// Two ends of a new pair, both close-on-exec. Throws Error{io}.
struct WirePair {
  int front = -1, worker = -1;
};
WirePair make_wire_pair();

}  // namespace hearth::server
