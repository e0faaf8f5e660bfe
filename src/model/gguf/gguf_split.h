// File names of a model split into several files in one folder: MODEL-00001-of-00003.gguf and so
// on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace knap {

struct SplitName {
    std::filesystem::path folder;
    std::string model;  // the name before "-00001-of-00003.gguf"
    int count = 1;

    std::filesystem::path part(int part_number) const;
};

// Returns nullopt when `path` is not named like a part.
std::optional<SplitName> parse_split_name(const std::filesystem::path& path);

}  // namespace knap
