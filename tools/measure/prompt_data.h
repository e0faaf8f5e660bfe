// Files of prompts: JSON Lines, one object per line with a string `prompt` and, if it likes, the
// strings `id` and `task`. Other fields are left alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace knap {

struct DataPrompt {
    std::string id;  // of the file, or "line 3"; no other prompt of the file has it
    std::string task;
    std::string text;
    std::string where{};  // "FILE:3"; empty: from no file
};

// A prompt that could not be used.
struct SkippedPrompt {
    std::string where;  // "FILE:3"
    std::string why;

    bool operator==(const SkippedPrompt&) const = default;
};

struct PromptData {
    std::vector<DataPrompt> prompts;
    std::vector<SkippedPrompt> skipped;
};

// The first `limit` prompts (0: all) of `source`: a file, or FILE.jsonl:TASK for those of one task
// in it. A line that holds no prompt is skipped with a warning that names file and line; an empty
// one silently. Throws when the file cannot be read or no line serves.
PromptData read_prompt_source(const std::string& source, int limit);

// The prompts alone.
std::vector<DataPrompt> read_prompt_data(const std::filesystem::path& path, int limit);

// The file of a source.
std::filesystem::path file_of_source(const std::string& source);

}  // namespace knap
