// The flags that commands share, each declared once. A command calls the functions for the flags
// that it has.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/App.hpp>

#include "knap/types.h"

#include "hub/reference.h"

namespace knap {

inline constexpr int kMaxThreads = 512;  // of one ggml thread pool

// A model on the hub.
struct HubSettings {
    HubReference reference;  // without a repository: none is wanted
    std::string file;        // in place of what the reference says; empty: not given
    std::string token;       // empty: that of the environment
    bool is_offline = false;
};

// The values of the flags.
struct Settings {
    RuntimeConfig runtime;
    HubSettings hub;
    GenerateOptions generate;
    std::filesystem::path plan_file;  // file with the plan to draft with; empty: none

    std::optional<std::string> prompt;
    std::optional<std::filesystem::path> prompt_file;  // "-": standard input
    std::filesystem::path prompt_cache;                // empty: none

    std::string chat_template;     // empty: the model's own
    std::string system;            // empty: no system message
    std::string json_schema;       // of answers; empty: none. Also as `generate.grammar`
    std::string reasoning_effort;  // for the template; empty: its default
    bool enables_thinking = true;
    bool separates_thoughts = true;  // from the answer
    bool works_when_idle = true;     // measures and searches while nobody asks
    bool is_raw = false;

    bool shows_draft = false;
    bool wants_json = false;
    bool lists_devices = false;
    bool is_verbose = false;
};

void add_model_flags(CLI::App& app, Settings& settings);    // -m -hf --adapter --device -fa -ctk
void add_runtime_flags(CLI::App& app, Settings& settings);  // -c -t -ub --repack
void add_prompt_flags(CLI::App& app, Settings& settings);   // -p -f --raw
void add_prompt_cache_flag(CLI::App& app, Settings& settings);
void add_chat_flags(CLI::App& app, Settings& settings);  // --system --chat-template --reasoning ...
void add_chat_template_flag(CLI::App& app, Settings& settings);
void add_reasoning_format_flag(CLI::App& app, Settings& settings);
// -n --stop --ignore-eos --grammar-file --json-schema-file
void add_generation_flags(CLI::App& app, Settings& settings);
void add_idle_work_flag(CLI::App& app, Settings& settings, const char* title, const char* help);
void add_sampling_flags(CLI::App& app, Settings& settings);
// Only --temp --top-k --top-p --min-p --seed.
void add_temperature_flags(CLI::App& app, Settings& settings, const char* title);
void add_profile_flag(CLI::App& app, Settings& settings);
// --memory; commands differ in the default.
void add_memory_flag(CLI::App& app, Settings& settings, bool is_on_by_default);
void add_assumption_flag(CLI::App& app, Settings& settings);  // --assume-acceptance
void add_speculation_flags(CLI::App& app, Settings& settings);
void add_json_flag(CLI::App& app, Settings& settings);
void add_common_flags(CLI::App& app, Settings& settings);  // -v -h: call last, to end the help

// The rules of --acceptance by name.
using AcceptanceChoices = std::span<const std::pair<std::string_view, AcceptanceRule>>;
AcceptanceChoices acceptance_rules();

// Lists the strategies and their settings, for the end of a help text.
std::string describe_strategies();

// Checks flags that exclude or need one another. Throws UsageError.
void check_settings(const Settings& settings);

}  // namespace knap
