// Files of prompts: JSON Lines, one object per line with a string `prompt` and, optionally, the
// strings `id` and `task`. Other fields are ignored.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace knap {

struct DataPrompt {
    std::string id;  // from the file, or "line 3"; unique within the file
    std::string task;
    std::string text;
    std::string where{};  // "FILE:3"; empty: not from a file
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

// `limit` prompts (0: all) of `source`, without the first `skip`. A source is a file, or
// FILE.jsonl:TASK for one task of it. A line without a valid prompt is skipped with a warning that
// names file and line, a blank line silently. Throws when the file cannot be read or has no such
// prompt.
PromptData read_prompt_source(const std::string& source, int limit, int skip = 0);

// The first prompts, without the skipped lines.
std::vector<DataPrompt> read_prompt_data(const std::filesystem::path& path, int limit);

// The file in FILE.jsonl:TASK.
std::filesystem::path file_of_source(const std::string& source);

}  // namespace knap
