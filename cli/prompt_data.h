// Files of prompts: JSON Lines, one object per line with a string `prompt` and, if it likes, the
// strings `id` and `task`. Other fields are left alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace knap {

struct DataPrompt {
    std::string id;  // of the file, or "line 3"
    std::string task;
    std::string text;
};

// The first `limit` prompts (0: all). A line that holds no prompt is skipped with a warning that
// names file and line; an empty one silently. Throws when the file cannot be read or no line
// serves.
std::vector<DataPrompt> read_prompt_data(const std::filesystem::path& path, int limit);

}  // namespace knap
