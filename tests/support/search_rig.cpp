#include "support/search_rig.h"

#include <algorithm>

#include "base/text.h"
#include "support/logits.h"
#include "support/tiny_model.h"
#include "tools/make_model/random_model.h"

namespace knap::test {

SearchRig::SearchRig(const SearchRigOptions& options)
    : model(options.model.empty() ? tiny_model() : options.model,
            options.repack,
            1,
            Kernels::ggml,
            options.device),
      rig(model, options.forward),
      text(options.text.empty() ? random_tokens(options.n_text, model.config.n_vocab, 7)
                                : options.text) {
    for (std::size_t first = 0; first < text.size();) {
        const auto most = static_cast<std::size_t>(rig.forward.max_rows(static_cast<int>(first)));
        const std::size_t count = std::min(most, text.size() - first);
        rig.feed(std::span(text).subspan(first, count));
        first += count;
    }
}

TargetRows SearchRig::target(int n_rows) {
    return collect_target_rows(rig.forward, rig.cache, text, {.n_rows = n_rows, .streams = true});
}

std::vector<float> SearchRig::end_state(const ModulePlan& plan, int n_rows) {
    const int n_committed = rig.cache.committed();
    const int end = 2 * n_layers();
    const auto captured =
        rig.forward
            .run({.tokens = std::span(text).last(static_cast<std::size_t>(n_rows)),
                  .plan = &plan,
                  .first_row = n_committed,
                  .layout = {.kind = AttentionLayout::Kind::branches,
                             .context = n_committed - n_rows,
                             .branch_rows = n_rows},
                  .captures = std::span(&end, 1)})
            .captures.front();
    return {captured.begin(), captured.end()};
}

std::vector<Token> SearchRig::first_drafts(const ModulePlan& plan, int n_rows) {
    const int n_text = rig.cache.committed();
    rig.cache.truncate(n_text - n_rows);
    std::vector<Token> drafts;
    for (int row = n_text - n_rows; row < n_text; ++row) {
        const auto token = std::span(text).subspan(static_cast<std::size_t>(row), 1);
        drafts.push_back(argmax(rig.run({.tokens = token, .plan = &plan, .first_row = row})[0]));
        rig.feed(token);
    }
    return drafts;
}

std::int64_t SearchRig::n_passes() const {
    const GraphStatistics& graphs = rig.forward.statistics().graphs;
    return graphs.built + graphs.reused;
}

std::vector<double> compare_states(SimilarityEvaluator& evaluator,
                                   TargetRows& target,
                                   std::vector<float> stream,
                                   std::size_t n_states) {
    std::vector<double> scores(n_states);
    const LevelTrial trial{Level::skip, scores};
    target.streams.back().swap(stream);
    evaluator.try_module(
        {.module = static_cast<int>(target.streams.size()) - 2, .levels = std::span(&trial, 1)});
    target.streams.back().swap(stream);
    return scores;
}

std::filesystem::path tiny_model_of_layers(int n_layers) {
    auto path = temporary_folder() / concat("tiny-llama-of-", n_layers, ".gguf");
    if (!std::filesystem::exists(path)) {
        write_random_model({.shape = "tiny-llama", .type = "F32", .n_layers = n_layers}, path);
    }
    return path;
}

KnapsackProblem problem_with_windows(int n_layers, std::span<const Window> windows, int budget) {
    KnapsackItem attention;
    for (const Window& window : windows) {
        attention.cheaper.push_back({.level = Level::windowed(window.sinks, window.recent),
                                     .saved = static_cast<int>(attention.cheaper.size()) + 1});
    }
    attention.cheaper.push_back(
        {.level = Level::skip, .saved = static_cast<int>(attention.cheaper.size()) + 1});
    const KnapsackItem mlp = {.cheaper = {{.level = Level::skip, .saved = 1}}};
    KnapsackProblem problem{.budget = budget};
    for (int layer = 0; layer < n_layers; ++layer) {
        problem.items.push_back(attention);
        problem.items.push_back(mlp);
    }
    return problem;
}

}  // namespace knap::test
