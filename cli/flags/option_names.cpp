#include "cli/flags/option_names.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace knap {
namespace {

struct OptionName {
    std::string_view field;  // of RuntimeConfig, GenerateOptions or a nested struct; or a setting
    std::string_view flag;
};

constexpr std::array kNames = {
    OptionName{".adapter_path", "--adapter"},
    OptionName{".assume_acceptance", "--assume-acceptance"},
    OptionName{".cache_type_k", "-ctk"},
    OptionName{".cache_type_v", "-ctv"},
    OptionName{".chat_template", "--chat-template"},
    OptionName{".devices", "--device"},
    OptionName{".draft_max", "--draft-max"},
    OptionName{".settings[exit-confidence]", "--exit-confidence"},
    OptionName{".flash_attention", "-fa"},
    OptionName{".frequency_penalty", "--frequency-penalty"},
    OptionName{".grammar", "--grammar-file"},
    OptionName{".host", "--host"},
    OptionName{".ignore_eos", "--ignore-eos"},
    OptionName{".json_schema", "--json-schema-file"},
    OptionName{".kernels", "--kernels"},
    OptionName{".logit_bias", "--logit-bias"},
    OptionName{".memory", "--memory"},
    OptionName{".min_p", "--min-p"},
    OptionName{".n_cache_rows", "--cache-rows"},
    OptionName{".n_ctx", "-c"},
    OptionName{".n_gpu_layers", "-ngl"},
    OptionName{".n_logprobs", "--logprobs"},
    OptionName{".n_parallel", "--parallel"},
    OptionName{".n_threads", "-t"},
    OptionName{".n_ubatch", "-ub"},
    OptionName{".settings[plan]", "--draft-plan"},
    OptionName{".presence_penalty", "--presence-penalty"},
    OptionName{".profile", "--profile"},
    OptionName{".repack", "--repack"},
    OptionName{".repeat_last_n", "--repeat-last-n"},
    OptionName{".repeat_penalty", "--repeat-penalty"},
    OptionName{".settings", "--strategy-options"},
    OptionName{".stop", "--stop"},
    OptionName{".strategy", "--strategy"},
    OptionName{".temperature", "--temp"},
    OptionName{".token", "--hf-token"},
    OptionName{".top_k", "--top-k"},
    OptionName{".top_p", "--top-p"},
    OptionName{".settings[width]", "--draft-width"},
    OptionName{".worker_timeout_s", "--rpc-timeout"},
    OptionName{".workers", "--rpc"},
};

// Returns an empty text when no flag sets the field.
std::string flag_of(std::string_view field) {
    const auto* found = std::ranges::find(kNames, field, &OptionName::field);
    if (found != kNames.end()) {
        return std::string(found->flag);
    }
    constexpr std::string_view kSetting = ".settings[";
    if (field.starts_with(kSetting) && field.ends_with(']')) {
        field.remove_prefix(kSetting.size());
        return concat("--strategy-options ", field.substr(0, field.size() - 1));
    }
    return {};
}

}  // namespace

std::string with_flag_names(std::string_view text) {
    std::string out;
    for (;;) {
        const std::size_t open = text.find('`');
        const std::size_t close = text.find('`', open == text.npos ? open : open + 1);
        if (close == text.npos) {
            return out.append(text);
        }
        const std::string_view field = text.substr(open + 1, close - open - 1);
        if (const std::string flag = flag_of(field); !flag.empty()) {
            out.append(text.substr(0, open)).append(flag);
            text.remove_prefix(close + 1);
        } else {  // the closing backquote may open the next pair
            out.append(text.substr(0, close));
            text.remove_prefix(close);
        }
    }
}

}  // namespace knap
