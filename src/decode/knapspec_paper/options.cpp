#include "decode/knapspec_paper/options.h"

#include <array>

#include "decode/option_table.h"
#include "model/config.h"

namespace knap {

namespace {

// Sets `target` by `text`. Returns false if it is neither "code" nor "paper".
template <typename Value>
bool choose(std::string_view text, Value& target, const Value& code, const Value& paper) {
    if (text != "code" && text != "paper") {
        return false;
    }
    target = text == "code" ? code : paper;
    return true;
}

bool set_variant(PaperOptions& options, std::string_view text);

bool set_lengths(PaperOptions& options, std::string_view text) {
    return choose(text, options.choice.lengths, kOfficialLengths, kPaperLengths);
}

bool set_candidates(PaperOptions& options, std::string_view text) {
    return choose(text, options.choice.passes_over_first, true, false);
}

bool set_forced(PaperOptions& options, std::string_view text) {
    return choose(text, options.forces_outer_layers, true, false);
}

bool set_cap(PaperOptions& options, std::string_view text) {
    std::optional<int>& cap = options.weight_cap;
    return choose(text, cap, {kOfficialWeightCap}, {}) ||
           read_integer(text, 1, kMaxKindWeight, cap.emplace());
}

bool set_ties(PaperOptions& options, std::string_view text) {
    return choose(text, options.knapsack.skip_wins_ties, false, true);
}

bool set_threshold(PaperOptions& options, std::string_view text) {
    return choose(text, options.knapsack.strict_threshold, false, true);
}

bool set_unskipped(PaperOptions& options, std::string_view text) {
    return choose(text, options.knapsack.reuse_target, false, true);
}

bool set_interval(PaperOptions& options, std::string_view text) {
    SearchInterval& interval = options.interval;
    if (choose(text, interval, {}, {.rounds_of_large = 128})) {
        return true;
    }
    const bool is_read = read_integer(text, kShortestInterval, kLongestInterval, interval.rounds);
    interval.rounds_of_large = interval.rounds;
    return is_read;
}

bool set_confidence(PaperOptions& options, std::string_view text) {
    return choose(text, options.exits_by_most_probable, false, true);
}

bool set_start(PaperOptions& options, std::string_view text) {
    options.starts_on_prompt = text == "prompt";
    return text == "code" || text == "prompt";
}

bool set_tau(PaperOptions& options, std::string_view text) {
    float tau = 0;
    const bool is_read = read_number(text, -1, 1, tau);
    options.knapsack.min_cosine = static_cast<double>(tau);
    return is_read;
}

using PaperOption = StrategyOption<PaperOptions>;

constexpr std::string_view kCodeOrPaper = "code|paper";

constexpr std::array kOptions = {
    // Applied first, so that the others override it.
    PaperOption{{"variant", kCodeOrPaper,
                 "the settings below as in the code|as in the paper (default: code)"},
                set_variant},
    PaperOption{{"lengths", kCodeOrPaper, "draft lengths to rate: 0..17|1..10"}, set_lengths},
    PaperOption{{"candidates", kCodeOrPaper, "plans to rate: all but the one that skips least|all"},
                set_candidates},
    PaperOption{
        {"forced", kCodeOrPaper, "modules that always run: those of the first and last layer|none"},
        set_forced},
    PaperOption{{"cap", "code|paper|1..1000", "maximum weight of a module: 5|none"}, set_cap},
    PaperOption{{"ties", kCodeOrPaper, "on equal scores: run the module|skip it"}, set_ties},
    PaperOption{{"threshold", kCodeOrPaper, "states to keep: cosine >= tau|> tau"}, set_threshold},
    PaperOption{{"unskipped", kCodeOrPaper,
                 "state that skips nothing: compute it again|reuse the whole model's"},
                set_unskipped},
    PaperOption{{"interval", "code|paper|7..1000000",
                 "rounds between searches: 64|64, or 128 above 10B parameters"},
                set_interval},
    PaperOption{{"confidence", kCodeOrPaper,
                 "exit confidence: of the drafted token|of the most probable one"},
                set_confidence},
    PaperOption{{"start", "code|prompt",
                 "first search: after round 6|also on the end of the prompt (default: code)"},
                set_start},
    PaperOption{{"tau", "-1..1", "minimum mean cosine of a state (default: 0.5)"}, set_tau},
    exit_confidence_option<PaperOptions>(
        "stop drafting after a token less probable than this (default: 0.7)"),
};

// Sets every other option that has both values.
bool set_variant(PaperOptions& options, std::string_view text) {
    if (text != "code" && text != "paper") {
        return false;
    }
    for (const PaperOption& option : std::span(kOptions).subspan<1>()) {
        if (option.info.values.starts_with(kCodeOrPaper)) {
            option.set(options, text);
        }
    }
    return true;
}

}  // namespace

int SearchInterval::for_model(std::int64_t n_parameters) const {
    return n_parameters > kLargeModel ? rounds_of_large : rounds;
}

PaperOptions read_paper_options(const SpeculationOptions& options) {
    PaperOptions paper;
    paper.draft_max = draft_max_or(options, paper.draft_max);
    apply_settings(options.settings, kOptions, paper);
    return paper;
}

std::span<const StrategyOptionInfo> paper_option_infos() {
    static const auto infos = infos_of(kOptions);
    return infos;
}

std::int64_t count_parameters(const ModelConfig& config) {
    const std::int64_t n_embd = config.n_embd;
    const std::int64_t attention = 2 * n_embd * (config.n_embd_q() + config.n_embd_kv());
    const std::int64_t mlp = 3 * n_embd * config.n_ff;
    return config.n_layers * (attention + mlp) + 2 * n_embd * config.n_vocab;
}

}  // namespace knap
