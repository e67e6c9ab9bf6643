// Private to server.cpp and session.cpp: one client's connection, from its first byte to its end.
//
// It reads a head, asks on_head, reads the body, calls on_request and writes the answer; then again. While an answer is
// awaited or written a read stays pending, so that a client's end is seen. Everything runs on the connection's strand.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "net/chunked_decoder.h"
#include "net/exchange_state.h"
#include "net/io.inl"
#include "net/request_head.h"

namespace hearth::net {

struct Peer {
  std::string address;
  bool over_unix_socket = false;
};

class Session final : public Connection, public ExchangePort {
 public:
  Session(Core& core, Socket socket, Peer peer);
  ~Session() override;

  void start();
  void start_refused();  // 503: there are too many connections

  void cut() override;
  void drain() override;
  void evict() override;
  void wake() override;

 private:
  enum class State {
    head,       // waits for a request, or for the rest of its head
    body,       // reads its body
    exchange,   // waits for the answer, or writes it
    answering,  // writes an answer of its own, without an exchange
    lingers,    // drops what still comes, so that the client can read the answer
    closed
  };

  std::shared_ptr<Session> self() { return std::static_pointer_cast<Session>(shared_from_this()); }

  void read();
  void on_read(error_code ec, size_t n);
  void on_end_of_input();
  void advance();
  bool advance_head();
  bool advance_body();
  bool dispatch();

  void refuse(int status, std::string_view sentence, std::optional<HttpLimit> limit = std::nullopt);
  void answer_later(Response response, bool close);
  void answer(Response response, bool close);
  void flush();
  void put(ExchangeState::Output output);
  void upgrade();
  void write();
  void on_written(error_code ec, size_t n);
  void all_written();
  void next_request();
  void linger();
  void close(Exchange::End end);

  void set_deadline(Milliseconds time);
  void on_deadline();
  void watch();  // for the client's end while reading pauses

  const Strand strand_;
  Socket socket_;
  Timer deadline_, pace_, stall_;
  const Peer peer_;
  const HttpLimits& limits_;
  State state_ = State::head;
  bool reading_ = false, input_ended_ = false, pacing_ = false;

  std::string in_;  // received, not yet used
  std::array<char, 16 << 10> piece_;
  size_t lingered_bytes_ = 0;

  std::optional<HeadScanner> scanner_;
  ParsedHead parsed_;
  ChunkedDecoder chunks_;
  std::string body_;
  size_t body_bytes_max_ = 0;
  std::string path_;  // of the request at hand, for errors; of a broken one as far as it can be made out
  bool close_after_ = false, to_head_request_ = false;

  std::shared_ptr<ExchangeState> exchange_;
  std::shared_ptr<Session> hold_;  // this, while there is an exchange: after the client's end no read holds it
  std::shared_ptr<Upgrade> upgrade_;
  bool head_written_ = false, chunked_out_ = false, bodiless_ = false, out_ends_ = false;
  std::string out_, out_body_;             // on the way to the system, one after the other
  size_t out_sent_ = 0, out_counted_ = 0;  // bytes of both; bytes of the exchange among them, without framing
  bool writing_ = false;
};

}  // namespace hearth::net
