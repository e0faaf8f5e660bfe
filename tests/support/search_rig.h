// A model with a text in its cache, for searches over the most recent tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "search/similarity.h"
#include "support/loaded_model.h"

namespace knap::test {

struct SearchRigOptions {
    std::filesystem::path model{};  // empty: tiny-llama in F32
    int n_text = 96;                // committed rows
    std::vector<Token> text{};      // empty: random tokens
    Repack repack = Repack::off;
    ForwardOptions forward{};
    ggml_backend_dev_t device = nullptr;  // null: the CPU
};

struct SearchRig {
    explicit SearchRig(const SearchRigOptions& options = {});

    TargetRows target(int n_rows);
    int n_layers() const { return model.config.n_layers; }
    // X[2L] of the last `n_rows` tokens of the text when the model runs with `plan`, as a branch
    // after the rows before them: f32 [n_embd, n_rows].
    std::vector<float> end_state(const ModulePlan& plan, int n_rows);
    // The plan's first draft after each of the last `n_rows` tokens of the text, one real draft at
    // a time: the cache ends before the token, and afterwards the whole model's row replaces the
    // draft's.
    std::vector<Token> first_drafts(const ModulePlan& plan, int n_rows);
    // The number of passes so far.
    std::int64_t n_passes() const;

    LoadedModel model;
    ForwardRig rig;
    std::vector<Token> text;
};

// The scores of the evaluator's first states against `stream` [n_embd, r], in place of X[2L].
// `target` is what the evaluator was made with, its streams in host memory.
std::vector<double> compare_states(SimilarityEvaluator& evaluator,
                                   TargetRows& target,
                                   std::vector<float> stream,
                                   std::size_t n_states);

// A tiny-llama in F32 with another number of layers.
std::filesystem::path tiny_model_of_layers(int n_layers);

// Every attention may be full, at each window or skipped, every MLP full or skipped. A level saves
// as many units as its index in that list.
KnapsackProblem problem_with_windows(int n_layers, std::span<const Window> windows, int budget);

}  // namespace knap::test
