// The names of a model that is split over several files: MODEL-00001-of-00003.gguf and so on, in
// one folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace knap {

struct SplitName {
    std::filesystem::path folder;
    std::string model;  // what stands before "-00001-of-00003.gguf"
    int number = 1;     // from 1
    int count = 1;

    std::filesystem::path part(int part_number) const;
};

// Nothing when `path` is not named like a part.
std::optional<SplitName> parse_split_name(const std::filesystem::path& path);

}  // namespace knap
