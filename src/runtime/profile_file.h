// A measured CostProfile on disk: a JSON object with what it depends on (machine_fingerprint.h) and
// every sample, its plan in the written form of graph/plan_text.h. It is used only where all of
// what it depends on is the same.
#pragma once

#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "runtime/machine_fingerprint.h"
#include "search/cost/cost_profile.h"

namespace knap {

// "profile-<hash>.json" in the cache folder; nullopt when there is no cache folder.
std::optional<std::filesystem::path> profile_path(const MachineFingerprint& fingerprint);

nlohmann::ordered_json profile_to_json(const CostProfile& profile,
                                       const MachineFingerprint& fingerprint);

// Creates the folder where it is missing, and replaces a file of that name once the new one is
// whole. Throws knap::Error.
void save_profile(const std::filesystem::path& path,
                  const CostProfile& profile,
                  const MachineFingerprint& fingerprint);

// `blank` is the model's profile without samples; the result has those of the file. Nullopt: there
// is no such file, or one that does not fit, of which a warning says what differs. Never throws on
// what a file holds.
std::optional<CostProfile> load_profile(const std::filesystem::path& path,
                                        const MachineFingerprint& fingerprint,
                                        const CostProfile& blank);

}  // namespace knap
