#include "support/simulated_answer.h"

#include <algorithm>
#include <random>
#include <variant>

#include "base/hash.h"
#include "sampling/stop_rule.h"

namespace knap::test {

namespace {

// Of second candidates, where the first is wrong.
constexpr double kSecondsRight = 0.5;

double uniform(std::uint64_t seed, std::uint64_t n) {
    return static_cast<double>(mix_in(seed, n) >> 11) * 0x1p-53;
}

// A round of a draft that was made without the model.
class Simulation {
  public:
    Simulation(Strategy& strategy, const SimulatedAnswer& answer, const SimulatedMachine& machine)
        : strategy_(strategy),
          answer_(answer),
          machine_(machine),
          whole_model_(machine.machine.n_layers()),
          history_(answer.prompt) {
        history_.push_back(answer.answer.front());
    }

    SimulatedTime run() {
        strategy_.begin({.prompt = answer_.prompt,
                         .sampling = {.temperature = answer_.is_sampled ? 0.8f : 0.0f}});
        while (n_written() < answer_.answer.size()) {
            round();
        }
        return time_;
    }

  private:
    std::size_t n_written() const { return history_.size() - answer_.prompt.size(); }
    int n_context() const { return static_cast<int>(history_.size()) - 1; }

    double ms(const ModulePlan& plan, int n_rows) {
        const double noise = machine_.noise * (2 * uniform(machine_.seed, ++n_passes_) - 1);
        return (1 + noise) *
               machine_.machine.ms({.plan = plan, .n_context = n_context(), .n_rows = n_rows});
    }

    void round() {
        const auto rest = std::span(answer_.answer).subspan(n_written());
        const Proposal proposal = strategy_.propose({
            .history = history_,
            .n_room = std::min(kMaxDraft, static_cast<int>(rest.size()) - 1),
            .elapsed_ms = time_.ms,
            .n_expected = static_cast<int>(rest.size()),
        });
        tree_.clear();
        confidences_.clear();
        double draft_ms = 0;
        if (const auto* given = std::get_if<DraftTokens>(&proposal.draft)) {
            tree_ = *given->tree;
        } else if (const auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
            draft_ms = draft(*how, rest);
        }
        finish(rest, draft_ms);
    }

    // The probability that a plan drafts the right token, on average its acceptance: some
    // positions are hard for all plans.
    double chance(const ModulePlan& plan, std::size_t position) const {
        const auto windows = distinct_windows(plan);
        const double rate =
            windows.empty() ? 0 : answer_.acceptance(windows.front().recent, position);
        const double hard = uniform(machine_.seed + 2, position);
        return rate > 0.5 ? 1 - 2 * (1 - rate) * hard : 2 * rate * (1 - hard);
    }

    double draft(const DraftWithPlan& how, std::span<const Token> rest) {
        StopState stop(how.stop);
        bool goes_on = stop.starts();
        int n_checked = 0;  // drafts that the pass over the guess gave
        bool is_checking = !how.guess.empty();
        double draft_ms = is_checking ? ms(*how.plan, static_cast<int>(how.guess.size()) + 1) : 0;
        bool right_so_far = true;
        std::vector<std::pair<int, Token>> seconds;  // parent and token
        while (goes_on && tree_.n_nodes() < static_cast<int>(rest.size())) {
            const auto place = static_cast<std::size_t>(tree_.n_nodes());
            const std::size_t position = n_written() + place;
            const double right = chance(*how.plan, position);
            const double sure = answer_.is_sampled ? right * right : right;  // the confidence
            const bool was_right = right_so_far;
            right_so_far = right_so_far && uniform(machine_.seed + 1, position) < right;
            const Token token = right_so_far ? rest[place] : rest[place] + 10000;
            const bool is_single = !how.width_steps.empty() && sure > how.width_steps[0].above;
            if (how.width > 1 && !is_single) {
                const bool is_right = was_right && !right_so_far &&
                                      uniform(machine_.seed + 3, position) < kSecondsRight;
                seconds.emplace_back(static_cast<int>(place) - 1,
                                     is_right ? rest[place] : rest[place] + 20000);
            }
            if (is_checking) {
                ++n_checked;
                is_checking = place < how.guess.size() && how.guess[place] == token;
            } else {
                draft_ms += ms(*how.plan, 1);
            }
            tree_.add(token, static_cast<int>(place) - 1);
            confidences_.push_back(static_cast<float>(sure));
            goes_on = stop.goes_on(confidences_.back(), false);
        }
        for (const auto& [parent, token] : seconds) {
            tree_.add(token, parent);
        }
        return draft_ms;
    }

    void finish(std::span<const Token> rest, double draft_ms) {
        std::vector<int> path;
        int last = kPendingNode;
        for (int node = 0; node < tree_.n_nodes(); ++node) {
            if (tree_.parent(node) == last && tree_.token(node) == rest[path.size()]) {
                path.push_back(node);
                last = node;
            }
        }
        const auto emitted = rest.first(path.size() + 1);
        const double verify_ms = ms(whole_model_, tree_.n_nodes() + 1);
        strategy_.observe({
            .tree = tree_,
            .path = path,
            .emitted = emitted,
            .gaps = {},
            .logits = {},
            .captures = {},
            .confidences = confidences_,
            .draft_ms = draft_ms,
            .verify_ms = verify_ms,
            .own_draft_ms = draft_ms,
            .own_verify_ms = verify_ms,
        });
        history_.insert(history_.end(), emitted.begin(), emitted.end());
        time_.ms += draft_ms + verify_ms;
        ++time_.n_rounds;
        time_.n_drafted += tree_.n_nodes();
        time_.n_accepted += static_cast<int>(path.size());
    }

    Strategy& strategy_;
    const SimulatedAnswer& answer_;
    const SimulatedMachine& machine_;
    ModulePlan whole_model_;
    std::vector<Token> history_;
    DraftTree tree_;
    std::vector<float> confidences_;
    std::uint64_t n_passes_ = 0;
    SimulatedTime time_;
};

}  // namespace

SimulatedTime write_answer(Strategy& strategy,
                           const SimulatedAnswer& answer,
                           const SimulatedMachine& machine) {
    return Simulation(strategy, answer, machine).run();
}

std::vector<Token> repetitive(std::size_t n_tokens, double often, int n_run, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    const auto draw = [&] { return std::uniform_real_distribution<double>(0, 1)(engine); };
    std::vector<Token> text;
    while (text.size() < n_tokens) {
        if (text.size() > 50 && draw() < often) {
            const auto from =
                static_cast<std::size_t>(draw() * static_cast<double>(text.size() - 1));
            const auto end =
                std::min(from + 1 + static_cast<std::size_t>(2 * n_run * draw()), text.size());
            for (std::size_t i = from; i < end; ++i) {
                text.push_back(text[i]);
            }
        } else {
            // Few tokens are frequent, as in language.
            text.push_back(static_cast<Token>(10000 * std::pow(draw(), 4)));
        }
    }
    text.resize(n_tokens);
    return text;
}

}  // namespace knap::test
