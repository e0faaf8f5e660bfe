// A measured CostProfile on disk: a JSON object with everything it depends on
// (machine_fingerprint.h) and every sample, its plan in the written form of forward/plan_text.h. It
// is used only if everything it depends on is the same.
#pragma once

#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "runtime/files/machine_fingerprint.h"
#include "search/cost/cost_profile.h"

namespace knap {

// A sample as files have it. Reading throws as json_file.h describes.
nlohmann::ordered_json to_json(const CostSample& sample);
CostSample sample_from(const nlohmann::json& object, int n_layers);

// "profile-<hash>.json" in the cache folder; nullopt if there is no cache folder.
std::optional<std::filesystem::path> profile_path(const MachineFingerprint& fingerprint);

nlohmann::ordered_json profile_to_json(const CostProfile& profile,
                                       const MachineFingerprint& fingerprint);

// Creates the folder if needed and replaces an existing file atomically. Throws knap::Error.
void save_profile(const std::filesystem::path& path,
                  const CostProfile& profile,
                  const MachineFingerprint& fingerprint);

// Returns `blank`, the model's profile without samples, with the samples of the file. Returns
// nullopt if there is no such file, or if it does not match; then a warning says what differs.
// Never throws because of the file's contents.
std::optional<CostProfile> load_profile(const std::filesystem::path& path,
                                        const MachineFingerprint& fingerprint,
                                        const CostProfile& blank);

}  // namespace knap
