#include "prompt_data.h"

#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "text_file.h"

namespace knap {
namespace {

using nlohmann::json;

// The field as a string, or `otherwise` when the line has none.
std::string optional_string(const json& object, const char* name, std::string otherwise) {
    const auto field = object.find(name);
    if (field == object.end()) {
        return otherwise;
    }
    if (!field->is_string()) {
        fail("expected a string `", name, "`, found ", field->type_name());
    }
    return field->get<std::string>();
}

// Throws Error with what is wrong, without the place.
DataPrompt parse_line(const std::string& line, int number) {
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) {
        fail("expected a JSON object, found text that is no JSON");
    }
    if (!object.is_object()) {
        fail("expected a JSON object, found ", object.type_name());
    }
    DataPrompt prompt{
        .id = optional_string(object, "id", concat("line ", number)),
        .task = optional_string(object, "task", ""),
        .text = optional_string(object, "prompt", ""),
    };
    if (prompt.text.empty()) {
        fail("expected a string `prompt` that is not empty, found none");
    }
    return prompt;
}

}  // namespace

std::vector<DataPrompt> read_prompt_data(const std::filesystem::path& path, int limit) {
    std::istringstream lines(read_text_file(path, "data"));
    std::vector<DataPrompt> prompts;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        try {
            prompts.push_back(parse_line(line, number));
        } catch (const Error& error) {
            log_warning(path.string(), ":", number, ": ", error.what(), "; the line is skipped");
        }
        if (limit > 0 && prompts.size() == static_cast<std::size_t>(limit)) {
            break;
        }
    }
    if (prompts.empty()) {
        fail("data ", path.string(), ": expected lines with a prompt, found none in ", number,
             " lines");
    }
    return prompts;
}

}  // namespace knap
