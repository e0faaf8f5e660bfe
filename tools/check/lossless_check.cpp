#include "tools/check/lossless_check.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "decode/advance.h"
#include "model/head_subset.h"
#include "runtime/session_impl.h"
#include "sampling/sampler.h"

namespace knap {
namespace {

std::string every_second_middle_layer(int n_layers) {
    std::string layers;
    for (int layer = 1; layer < n_layers - 1; layer += 2) {
        layers += concat(layers.empty() ? "l" : "+", layer);
    }
    return layers + "=skip";
}

// Each cheaper in another way: less context, fewer layers, only the first ones. Where half of the
// layers are left out most drafts are wrong, so these are kept short, each by another rule.
std::vector<Contender> static_plan_contenders(const EngineParts& parts) {
    const int n_layers = parts.n_layers;
    std::vector<Contender> contenders{
        {"static, windows of 16+64", {.strategy = "static", .settings = {{"plan", "a=w16+64"}}}},
        {"static, windows of 16+64, trees",
         {.strategy = "static", .settings = {{"plan", "a=w16+64"}, {"width", "3"}}}}};
    if (n_layers >= 3) {
        contenders.push_back({"static, every second layer skipped",
                              {.strategy = "static",
                               .settings = {{"plan", every_second_middle_layer(n_layers)},
                                            {"exit-confidence", "0.5"}}}});
    }
    if (n_layers >= 2) {
        const int n_kept = n_layers / 2;
        contenders.push_back({concat("static, exit after layer ", n_kept),
                              {.strategy = "static",
                               .draft_max = 3,
                               .settings = {{"plan", concat("exit=", n_kept)}}}});
    }
    if (parts.n_experts_used >= 2) {
        contenders.push_back({"static, half of the experts",
                              {.strategy = "static",
                               .settings = {{"plan", concat("m=e", parts.n_experts_used / 2)}}}});
    }
    if (parts.has_reduced_head) {
        contenders.push_back(
            {"static, windows of 16+64, reduced head",
             {.strategy = "static", .settings = {{"plan", "a=w16+64,head=reduced"}}}});
    }
    return contenders;
}

std::optional<Token> token_at(const Result& result, std::size_t index) {
    return index < result.tokens.size() ? std::optional(result.tokens[index]) : std::nullopt;
}

// Runs the model, watched.
class Answering {
  public:
    Answering(Engine& engine, const CheckObserver& observer, double n_answers)
        : session_(impl_of(engine)), observer_(observer), n_answers_(n_answers) {}

    // Returns nullopt when cancelled.
    std::optional<Result> answer(std::span<const Token> prompt, const GenerateOptions& options) {
        Result result =
            session_.generate(prompt, options, {.is_cancelled = observer_.is_cancelled});
        if (result.stop == StopReason::cancelled) {
            return std::nullopt;
        }
        observer_.progress(++n_done_ / n_answers_);
        return result;
    }

    // The gap of plain decoding at token `index` of its answer. Repeats its single-row passes after
    // the prompt.
    float plain_gap(std::span<const Token> prompt,
                    const Result& plain,
                    std::size_t index,
                    const SamplingOptions& sampling) {
        session_.generate(prompt, {.n_predict = 0, .speculation = plain_decoding()}, {});
        session_.cache.truncate(static_cast<int>(prompt.size()) - 1);
        Sampler sampler(sampling, session_.engine.model.n_vocab, session_.engine.config.n_ctx);
        for (const Token token : prompt) {
            sampler.accept(token);
        }
        for (std::size_t i = 0;; ++i) {
            const auto logits = advance(session_.forward, session_.cache, session_.history);
            const auto position = static_cast<std::int64_t>(session_.history.size());
            if (i == index) {
                return sampler.sample_with_gap(*logits, position).gap;
            }
            session_.history.push_back(plain.tokens[i]);
            sampler.accept(plain.tokens[i]);
        }
    }

  private:
    Session::Impl session_;
    const CheckObserver& observer_;
    double n_answers_;
    double n_done_ = 0;
};

// What the compared answers have in common.
struct ComparedAnswers {
    const CheckPrompt& prompt;
    const LosslessOptions& options;
    const SamplingOptions& sampling;
};

void add_answer(LosslessReport& report,
                Answering& answering,
                const ComparedAnswers& of,
                const Result& plain,
                const Result& drafted) {
    ++report.n_prompts;
    report.n_tokens += drafted.n_generated;
    report.n_drafted += drafted.speculation.n_drafted;
    report.n_accepted += drafted.speculation.n_accepted;
    std::optional<Divergence> divergence = find_divergence(plain, drafted);
    if (!divergence) {
        ++report.n_equal;
        return;
    }
    divergence->prompt = of.prompt.id;
    const auto index = static_cast<std::size_t>(divergence->position - plain.n_prompt);
    divergence->gap = answering.plain_gap(of.prompt.tokens, plain, index, of.sampling);
    const double bound = drafted.speculation.row_invariant ? 0 : of.options.near_tie_gap;
    (*divergence->gap < bound ? report.near_ties : report.mismatches)
        .push_back(std::move(*divergence));
}

std::vector<LosslessReport> empty_reports(const LosslessOptions& options) {
    std::vector<LosslessReport> reports;
    for (const SamplingOptions& sampling : options.samplings) {
        for (const Contender& contender : options.contenders) {
            reports.push_back({.contender = contender, .sampling = sampling});
        }
    }
    return reports;
}

double count_answers(std::span<const CheckPrompt> prompts, const LosslessOptions& options) {
    const std::size_t n_per_prompt = 1 + options.samplings.size() * (options.contenders.size() + 1);
    return static_cast<double>(prompts.size() * n_per_prompt);
}

// Adds the answers to one prompt to the reports, which lie as empty_reports() made them. False:
// cancelled.
bool check_prompt(Answering& answering,
                  const CheckPrompt& prompt,
                  const LosslessOptions& options,
                  std::span<LosslessReport> reports) {
    // Computes the prompt's rows, which every answer below reuses: all start from the same bits.
    if (!answering.answer(prompt.tokens, {.n_predict = 0, .speculation = plain_decoding()})) {
        return false;
    }
    for (const SamplingOptions& sampling : options.samplings) {
        GenerateOptions request{
            .n_predict = options.n_predict, .sampling = sampling, .speculation = plain_decoding()};
        const auto plain = answering.answer(prompt.tokens, request);
        for (LosslessReport& report : reports.first(options.contenders.size())) {
            request.speculation = report.contender.speculation;
            const auto drafted = plain ? answering.answer(prompt.tokens, request) : std::nullopt;
            if (!drafted) {
                return false;
            }
            KNAP_ASSERT(plain->speculation.n_drafted == 0, "the baseline is plain decoding");
            add_answer(report, answering, {prompt, options, sampling}, *plain, *drafted);
        }
        reports = reports.subspan(options.contenders.size());
    }
    return true;
}

}  // namespace

EngineParts parts_of(Engine& engine) {
    const Engine::Impl& impl = impl_of(engine);
    return {.n_layers = impl.model.n_layers,
            .has_reduced_head = HeadSubset::is_possible(*impl.weights),
            .has_adapter = impl.adapter != nullptr,
            .n_experts_used = impl.model.n_experts_used()};
}

std::vector<Contender> lossless_contenders(Engine& engine) {
    return lossless_contenders(parts_of(engine));
}

std::vector<Contender> lossless_contenders(const EngineParts& parts) {
    std::vector<Contender> contenders;
    for (const StrategyInfo& strategy : strategies().subspan(1)) {
        if (strategy.name == "static") {
            std::ranges::move(static_plan_contenders(parts), std::back_inserter(contenders));
            continue;
        }
        const std::string name(strategy.name);
        if (name == "cascade" || name == "draft-verify") {
            contenders.push_back({concat(name, ", windows of 16+64"),
                                  {.strategy = name, .settings = {{"plan", "a=w16+64"}}}});
        } else if (parts.n_layers >= strategy.min_layers &&
                   (!strategy.needs_adapter || parts.has_adapter)) {
            contenders.push_back({name, {.strategy = name}});
        }
    }
    return contenders;
}

std::optional<Divergence> find_divergence(const Result& plain, const Result& drafted) {
    if (plain.tokens == drafted.tokens && plain.stop == drafted.stop) {
        return std::nullopt;
    }
    const auto [first, ignored] = std::ranges::mismatch(plain.tokens, drafted.tokens);
    const auto index = static_cast<std::size_t>(first - plain.tokens.begin());
    Divergence divergence{.position = drafted.n_prompt + static_cast<int>(index),
                          .expected = token_at(plain, index),
                          .found = token_at(drafted, index)};
    return divergence;
}

std::optional<std::vector<LosslessReport>> check_lossless(Engine& engine,
                                                          std::span<const CheckPrompt> prompts,
                                                          const LosslessOptions& options,
                                                          const CheckObserver& observer) {
    Answering answering(engine, observer, count_answers(prompts, options));
    std::vector<LosslessReport> reports = empty_reports(options);
    for (const CheckPrompt& prompt : prompts) {
        if (!check_prompt(answering, prompt, options, reports)) {
            return std::nullopt;
        }
    }
    return reports;
}

}  // namespace knap
