#include "server/routes/routes.h"

#include <array>

namespace hearth::server {

std::span<const Route* const> routes() {
  // clang-format off
  static constexpr std::array kRoutes = {
      &kChatCompletions,
      &kCompletions,
      &kMessages,
      &kCountTokens,
      &kResponses,
      &kResponse,
      &kDeleteResponse,
      &kEmbeddings,
      &kSignal,
      &kGenerate,
      &kAdapters,
      &kMountAdapter,
      &kAdaptersAvailable,
      &kUnmountAdapter,
      &kModels,
      &kModel,
      &kTokenize,
      &kTokenizeV1,
      &kDetokenize,
      &kDetokenizeV1,
      &kApplyTemplate,
      &kStats,
      &kStatsV1,
      &kLibrary,
      &kFit,
      &kLoad,
      &kUnload,
      &kPin,
      &kPs,
      &kChatSocket,
      &kSocketTicket,
      &kHealth,
      &kReady,
      &kVersion,
      &kOpenapi,
      &kIndex,
      &kMetrics,
      &kPage,
      &kPageScript,
      &kPageStyle,
      &kToStatus,
      &kToChat,
      &kToQuantize,
      &kToFinetune,
      &kToDataset,
  };
  // clang-format on
  return kRoutes;
}

}  // namespace hearth::server
