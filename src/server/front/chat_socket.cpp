#include "server/front/chat_socket.h"

#include <new>
#include <utility>

#include "server/error_at_hand.h"
#include "server/front/chat_store.h"
#include "server/http/request_limits.h"

namespace hearth::server {
namespace {

constexpr net::Milliseconds kCloseTime{500};        // for a client whose credential was taken back
constexpr size_t kStrangerBytes = size_t{4} << 10;  // an auth frame
constexpr size_t kSendBytesMax = size_t{16} << 20;  // a history, a queue and a log together are less than half of it

}  // namespace

ChatSocket::ChatSocket(Services& services, std::string owner, std::string holder)
    : services_(services), owner_(std::move(owner)), holder_(std::move(holder)) {}

void ChatSocket::accept(Services& services, const Call& call, std::string holder) {
  const std::shared_ptr<ChatSocket> self(new ChatSocket(services, call.owner, std::move(holder)));
  net::WebSocketOptions options;
  services.settings.limits.put(options);
  options.too_big_code = kTooBig;
  options.send_bytes_max = kSendBytesMax;
  options.headers = call.headers;
  if (self->holder_.empty()) options.stranger_bytes_max = kStrangerBytes;
  self->socket_ = net::accept_websocket(
      *call.exchange, call.request.head, std::move(options),
      {.on_message = [self](const std::string& text, bool is_text) { self->on_message(text, is_text); },
       .on_closed = [self](int, std::string_view) { self->on_closed(); },
       .on_drained =
           [self] {
             if (const auto chat = self->chat()) chat->drained(self->socket_.get());
           },
       .on_limit = [self](net::WebSocketLimit limit) { self->on_limit(limit); }});
  services.counters.count(std::string(call.route), 101);
  if (!self->holder_.empty()) return self->enter({});
  services.http.after(kTicketTime, [weak = std::weak_ptr(self)] {
    const auto still = weak.lock();
    if (still && !still->chat()) still->close(kNotLetIn, "no ticket came");
  });
}

void ChatSocket::enter(const json::Value& frame_id) {
  if (!services_.chats.add_socket(holder_, shared_from_this())) {
    services_.counters.count(LimitId::websockets);
    return close(kBusy, fmt::format("{} WebSockets of this credential are open", services_.chats.limits().sockets_max));
  }
  const auto chat = std::make_shared<Chat>(services_, owner_);
  move_to(chat);
  chat->open(socket_, frame_id);
  if (!services_.auth.may_control(holder_)) revoke();  // taken back meanwhile
}

// Of a socket whose holder is not known yet, or of one that says once more who it is. False: it closes.
bool ChatSocket::take_ticket(const frames::ClientFrame& frame) {
  const std::optional<Tickets::Bearer> bearer = services_.tickets.take(*present(frame.body, "ticket")->string());
  const bool is_ours =
      bearer && services_.auth.may_control(bearer->holder) && (holder_.empty() || holder_ == bearer->holder);
  if (!is_ours) {
    close(kNotLetIn, "the ticket is none, or no longer one");
    return false;
  }
  if (holder_.empty()) {
    holder_ = bearer->holder;
    owner_ = bearer->owner;
  }
  return true;
}

std::shared_ptr<Chat> ChatSocket::chat() {
  const std::lock_guard lock(mutex_);
  return chat_;
}

void ChatSocket::close(int code, std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  socket_->close(code, reason);
}

void ChatSocket::revoke() {
  close(kRevoked, "the credential was taken back");
  leave(chat());
  services_.http.after(kCloseTime, [weak = std::weak_ptr(socket_)] {
    if (const auto socket = weak.lock()) socket->abort();
  });
}

void ChatSocket::move_to(const std::shared_ptr<Chat>& chat) {
  std::shared_ptr<Chat> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(chat_, chat);
  }
  services_.chats.add(holder_, chat->id(), chat);
  if (before != chat) leave(before);
}

void ChatSocket::leave(const std::shared_ptr<Chat>& chat) {
  if (!chat) return;
  if (chat->leave(socket_.get()) && chat->has_begun())
    services_.chats.keep(holder_, chat->id(), chat, static_cast<int64_t>(chat->bytes()));
}

void ChatSocket::on_closed() {
  std::shared_ptr<Chat> chat;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    chat = std::exchange(chat_, nullptr);
  }
  leave(chat);
}

void ChatSocket::on_message(std::string_view text, bool is_text) {
  std::shared_ptr<Chat> chat;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    chat = chat_;
  }
  if (!chat) return hear_stranger(text, is_text);
  json::Value id;
  try {
    if (!is_text) throw RequestError("", "a frame must be a text message, this one was binary");
    const frames::ClientFrame frame = frames::read_frame(text, services_.settings.limits);
    id = frame.id;
    check_request_limits(frame.body, "/ws/chat", services_.settings.limits);
    if (frames::check(frame) == frames::Standing::not_yet) chat->send(socket_, frames::not_yet(frame));
    else on_frame(frame);
  } catch (...) {
    const Problem problem = problem_at_hand();
    services_.counters.count("/ws/chat", problem);
    chat->send(socket_, frames::error(id, problem));
  }
}

void ChatSocket::on_limit(net::WebSocketLimit limit) {
  switch (limit) {
    case net::WebSocketLimit::message: return services_.counters.count(LimitId::websocket_message);
    case net::WebSocketLimit::idle: return services_.counters.count(LimitId::websocket_idle);
    case net::WebSocketLimit::slow_reader: return services_.counters.count(LimitId::slow_reader);
  }
}

// Anything but an auth frame ends it.
void ChatSocket::hear_stranger(std::string_view text, bool is_text) {
  try {
    const frames::ClientFrame frame = frames::read_frame(is_text ? text : "", services_.settings.limits);
    if (frame.type != "auth") return close(kNotLetIn, "the first frame is auth with a ticket");
    frames::check(frame);
    if (!take_ticket(frame)) return;
    socket_->welcome();
    enter(frame.id);
  } catch (const Error&) {
    close(kNotLetIn, "the first frame is auth with a ticket");
  } catch (const std::bad_alloc&) {
    close(kBusy, no_memory().what());
  }
}

void ChatSocket::on_frame(const frames::ClientFrame& frame) {
  if (frame.type == "auth") {
    if (take_ticket(frame)) chat()->send(socket_, frames::ack(frame.id));
    return;
  }
  if (frame.type == "new_session") {
    const auto fresh = std::make_shared<Chat>(services_, owner_);
    move_to(fresh);
    return fresh->open(socket_, frame.id);
  }
  if (frame.type != "resume") return chat()->handle(socket_, frame);
  const std::string& id = *present(frame.body, "conversation")->string();
  const std::shared_ptr<Chat> found = services_.chats.find(holder_, id);
  if (!found) {
    Problem problem = problem_of(RequestError("conversation", fmt::format("there is no conversation {}", id)));
    problem.kind = name_of(ErrorKind::not_found);
    return chat()->send(socket_, frames::error(frame.id, problem));
  }
  found->resume(socket_, frame.id, present(frame.body, "after_seq")->as_int("after_seq"));
  move_to(found);
}

}  // namespace hearth::server
