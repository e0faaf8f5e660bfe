#include "decode/del/options.h"

#include <array>

#include "decode/option_table.h"

namespace knap {

namespace {

constexpr int kMaxPromptRows = 128;

bool set_stop(DelOptions& options, std::string_view text) {
    options.uses_best_length = text == "length";
    return text == "confidence" || text == "length";
}

using DelOption = StrategyOption<DelOptions>;

constexpr std::array kOptions = {
    DelOption{{"stop", "confidence|length",
               "end drafts by confidence|at the layer's best length, DELE (default: confidence)"},
              set_stop},
    DelOption{{"decay", "0..1", "factor that a round multiplies earlier counts by (default: 0.95)"},
              [](DelOptions& options, std::string_view text) {
                  return read_number(text, 0, 1, options.decay);
              }},
    DelOption{
        {"prompt-rows", "0..128", "last prompt tokens to start the counts with (default: 32)"},
        [](DelOptions& options, std::string_view text) {
            return read_integer(text, 0, kMaxPromptRows, options.prompt_rows);
        }},
};

}  // namespace

DelOptions read_del_options(const SpeculationOptions& options) {
    DelOptions del;
    apply_settings(options.settings, kOptions, del);
    del.draft_max = draft_max_or(options, del.draft_max);
    return del;
}

std::span<const StrategyOptionInfo> del_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

}  // namespace knap
