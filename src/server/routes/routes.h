// Every route, one a file.
#pragma once
#include "server/http/route.h"

namespace hearth::server {

extern const Route kChatCompletions, kCompletions;
extern const Route kMessages, kCountTokens;
extern const Route kResponses, kResponse, kDeleteResponse;
extern const Route kAdapters, kMountAdapter, kAdaptersAvailable, kUnmountAdapter;
extern const Route kEmbeddings;
extern const Route kSignal, kGenerate;
extern const Route kModels, kModel;
extern const Route kTokenize, kTokenizeV1, kDetokenize, kDetokenizeV1, kApplyTemplate;
extern const Route kHealth, kReady, kVersion, kIndex, kOpenapi, kMetrics, kStats, kStatsV1;
extern const Route kPage, kPageScript, kPageStyle;
extern const Route kChatSocket, kSocketTicket;
extern const Route kLibrary, kFit;
extern const Route kToStatus, kToChat, kToQuantize, kToFinetune, kToDataset;
extern const Route kLoad, kUnload, kPin, kPs;

}  // namespace hearth::server
