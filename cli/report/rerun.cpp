#include "cli/report/rerun.h"

#include "base/text.h"
#include "cli/bench/prompts.h"
#include "tools/measure/report/bench_setup_json.h"

namespace knap {
namespace {

using nlohmann::json;

struct RerunFlag {
    const char* setting;
    const char* flag;
};

constexpr RerunFlag kFlags[] = {
    {"data", "--data"},
    {"depths", "-d"},
    {"strategies", "--strategies"},
    {"n_predict", "-n"},
    {"limit", "--limit"},
    {"skip", "--skip"},
    {"max_prompt_tokens", "--max-prompt-tokens"},
    {"repeat", "--repeat"},
    {"threads", "-t"},
    {"n_ctx", "-c"},
    {"adapter", "--adapter"},
    {"cache_type_k", "-ctk"},
    {"cache_type_v", "-ctv"},
    {"kernels", "--kernels"},
    {"assume_acceptance", "--assume-acceptance"},
    {"peer", "--peer"},
};
// Included only when sampling.
constexpr RerunFlag kSamplingFlags[] = {
    {"temperature", "--temp"}, {"top_k", "--top-k"}, {"top_p", "--top-p"},
    {"min_p", "--min-p"},      {"seed", "--seed"},   {"acceptance", "--acceptance"},
};

// Quotes a word for a shell, which takes text in single quotes literally.
std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) {
        return text;
    }
    std::string quoted = "'";
    for (const char letter : text) {
        quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    }
    return quoted + "'";
}

// Returns an empty text for null.
std::string value_text(const json& value) {
    if (value.is_string()) {
        return value.get<std::string>();
    }
    return value.is_number() ? value.dump() : "";
}

// The value of a flag; lists are joined by commas. Empty when the flag was not given.
std::string flag_text(const json& value) {
    if (!value.is_array()) {
        return value == 0 ? "" : value_text(value);
    }
    const std::string joined = join(value, ",", value_text);
    return joined == kBuiltinData ? "" : joined;
}

template <std::size_t n>
std::string flags_of(const json& settings, const RerunFlag (&flags)[n]) {
    std::string words;
    for (const RerunFlag& wanted : flags) {
        const std::string value = flag_text(settings.at(wanted.setting));
        if (!value.empty()) {
            words += concat(" ", wanted.flag, " ", shell_word(value));
        }
    }
    return words;
}

// Flags of on/off settings; defaults are left out.
std::string switches_of(const BenchSettings& settings) {
    return concat(settings.parallel > 1 ? concat(" --parallel ", settings.parallel) : "",
                  settings.exact == false ? " --exact off" : "",
                  settings.fresh_strategies == true ? " --fresh-strategies" : "",
                  settings.profile == false ? " --profile none" : "",
                  settings.memory == true ? " --memory on" : "");
}

}  // namespace

std::string rerun_command(const ReportFile& file) {
    const json settings = to_json(file.bench.settings);
    const bool is_sampled = file.bench.settings.sampling.temperature > 0;
    return concat("knap bench -m ", shell_word(file.bench.model.file), flags_of(settings, kFlags),
                  switches_of(file.bench.settings),
                  is_sampled ? flags_of(settings, kSamplingFlags) : "", " -o ",
                  shell_word(file.name));
}

}  // namespace knap
