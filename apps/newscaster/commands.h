// The verbs of the program. Each runs one request and returns the exit code; failures are thrown as
// newscaster::Error.
#pragma once

#include "requests.h"

namespace newscaster::cli {

int run(const RenderRequest& request, const GlobalOptions& global);
int run(const PackInfoRequest& request, const GlobalOptions& global);
int run(const PackVerifyRequest& request, const GlobalOptions& global);
int run(const PackPlanRequest& request, const GlobalOptions& global);
int run(const AvatarInfoRequest& request, const GlobalOptions& global);
int run(const AvatarPreviewRequest& request, const GlobalOptions& global);
int run(const AvatarCreateRequest& request, const GlobalOptions& global);
int run(const ForensicsRequest& request, const GlobalOptions& global);
int run(const SyncRequest& request, const GlobalOptions& global);
int run(const DoctorRequest& request, const GlobalOptions& global);

}  // namespace newscaster::cli
