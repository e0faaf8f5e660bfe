// What runs have learned (decode/learned/learned.h) on disk: a JSON object with the machine that it
// holds for (machine_fingerprint.h), its counts, plans and times. A file is never larger than
// Learned's bounds allow, well below a megabyte.
#pragma once

#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "decode/learned/learned.h"
#include "runtime/files/machine_fingerprint.h"

namespace knap {

// "learned-<hash>.json" in the cache folder; nullopt if there is no cache folder.
std::optional<std::filesystem::path> learned_path(const MachineFingerprint& fingerprint);

nlohmann::ordered_json learned_to_json(const Learned& learned);

// Creates the folder if needed and replaces an existing file atomically. Throws knap::Error.
void save_learned(const std::filesystem::path& path,
                  const Learned& learned,
                  const MachineFingerprint& fingerprint);

// Empty if there is no such file, or if it does not match; then a warning says what differs. Never
// throws because of the file's contents.
Learned load_learned(const std::filesystem::path& path,
                     const MachineFingerprint& fingerprint,
                     int n_layers);

// Deletes the files in the folder that were written longest ago, but for `n_kept`, and what writers
// that were killed have left behind.
void drop_old_learned(const std::filesystem::path& folder, std::size_t n_kept);

}  // namespace knap
