#include "server/error_at_hand.h"

namespace hearth::server {
namespace {

const ClientError kNoMemory(ErrorKind::out_of_memory, "the server has too little memory for this request just now");

}  // namespace

const ClientError& no_memory() { return kNoMemory; }

}  // namespace hearth::server
