#include "tools/measure/prompt_data.h"

#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text_file.h"

namespace knap {
namespace {

using nlohmann::json;

// The field as a string, or `otherwise` when it is missing.
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

// Throws Error with a message that does not name file and line.
DataPrompt parse_line(const std::string& line, int number) {
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) {
        fail("expected a JSON object, found text that is not JSON");
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
        fail("expected a non-empty string `prompt`, found none");
    }
    return prompt;
}

// The task in FILE.jsonl:TASK; empty: every task.
std::string task_of_source(const std::string& source) {
    const std::size_t n_file = file_of_source(source).string().size();
    return n_file == source.size() ? "" : source.substr(n_file + 1);
}

bool is_blank(const std::string& line) {
    return line.find_first_not_of(" \t\r") == std::string::npos;
}

// Collects the prompts of a file, line by line.
class PromptReader {
  public:
    PromptReader(std::filesystem::path path, std::string task)
        : path_(std::move(path)), task_(std::move(task)) {}

    void add_line(const std::string& line, int number) {
        const std::string where = concat(path_.string(), ":", number);
        try {
            add(parse_line(line, number), where, number);
        } catch (const Error& error) {
            log_warning(where, ": ", error.what(), "; skipping the line");
            data_.skipped.push_back({where, error.what()});
        }
    }
    std::size_t n_prompts() const { return data_.prompts.size(); }
    PromptData take_after(int skip) {
        data_.prompts.erase(data_.prompts.begin(), data_.prompts.begin() + skip);
        return std::move(data_);
    }

  private:
    void add(DataPrompt prompt, const std::string& where, int number) {
        while (!ids_.insert(prompt.id).second) {
            prompt.id += concat(" (line ", number, ")");
        }
        if (task_.empty() || prompt.task == task_) {
            prompt.where = where;
            data_.prompts.push_back(std::move(prompt));
        }
    }

    std::filesystem::path path_;
    std::string task_;  // empty: all
    std::set<std::string> ids_;
    PromptData data_;
};

}  // namespace

std::filesystem::path file_of_source(const std::string& source) {
    constexpr std::string_view kSuffix = ".jsonl";
    const std::size_t colon = source.find(concat(kSuffix, ":"));
    return colon == std::string::npos ? source : source.substr(0, colon + kSuffix.size());
}

PromptData read_prompt_source(const std::string& source, int limit, int skip) {
    const std::filesystem::path path = file_of_source(source);
    std::istringstream lines(read_text_file(path, "data"));
    PromptReader reader(path, task_of_source(source));
    const auto n_skipped = static_cast<std::size_t>(skip);
    const auto n_wanted = n_skipped + static_cast<std::size_t>(limit);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (!is_blank(line)) {
            reader.add_line(line, number);
        }
        if (limit > 0 && reader.n_prompts() == n_wanted) {
            break;
        }
    }
    if (reader.n_prompts() == 0) {
        fail("data ", source, ": expected lines with a prompt, found none in ", number, " lines");
    }
    if (reader.n_prompts() <= n_skipped) {
        fail("data ", source, ": expected more than the ", skip, " prompts of --skip, found ",
             reader.n_prompts());
    }
    return reader.take_after(skip);
}

std::vector<DataPrompt> read_prompt_data(const std::filesystem::path& path, int limit) {
    return read_prompt_source(path.string(), limit).prompts;
}

}  // namespace knap
