#include "server/front/chat_socket.h"

#include <utility>

#include "server/front/chat_store.h"
#include "server/http/request_limits.h"

namespace hearth::server {
namespace {

constexpr net::Milliseconds kCloseTime{500};       // for a client whose credential was taken back
constexpr size_t kSendBytesMax = size_t{8} << 20;  // a history and a log together are less

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
  if (!services.chats.add_socket(self->holder_, self))
    return self->close(kBusy,
                       fmt::format("{} WebSockets of this credential are open", services.chats.limits().sockets_max));
  self->begin();
  if (!services.auth.may_control(self->holder_)) self->revoke();  // taken back meanwhile
}

std::shared_ptr<Chat> ChatSocket::chat() {
  const std::lock_guard lock(mutex_);
  return chat_;
}

void ChatSocket::begin() {
  const auto chat = std::make_shared<Chat>(services_, owner_);
  move_to(chat);
  chat->open(socket_);
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
  json::Value id;
  try {
    if (!is_text) throw RequestError("", "a frame must be a text message, this one was binary");
    const frames::ClientFrame frame = frames::read_frame(text);
    id = frame.id;
    if (frames::check(frame) == frames::Standing::not_yet) chat->send(socket_, frames::not_yet(frame));
    else on_frame(frame);
  } catch (const Error& error) {
    chat->send(socket_, frames::error(id, problem_of(error)));
  }
}

void ChatSocket::on_frame(const frames::ClientFrame& frame) {
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
    check_request_limits(frame.body, "/ws/chat", services_.settings.limits);

}  // namespace hearth::server
